--- @include protocols/bananas_record, complete/publish_result
-- Jobs of Bananas: leases, routes and ends.

-- Returns the route of a list; `default` for a list without one.
local function route_of(list)
  return string.sub(list, 1, #ROUTED) == ROUTED and string.match(list, '^[^:]+', #ROUTED + 1) or 'default'
end

-- Adds to a counter of a list, for statistics.
local function count(list, what, n) redis.pcall('HINCRBY', STATS, list .. ' ' .. what, n or 1) end

-- Returns true for a list of jobs that wait: others write the hash of leases and the registry of prefetch lists too.
local function own_queue(list)
  if list == PROCESSING or list == DEAD or list == SCHEDULED then return false end
  return string.sub(list, 1, #ROUTED) == ROUTED or string.sub(list, 1, #LISTED) == LISTED
end

-- Moves an id from a list with a wrong name to the list of jobs without a route.
local function send_home(id) redis.call('RPUSH', LIST, id) end

-- A lease id is the job's id; for a job of Bananas' cron, which has no id, a blank, the token and its position in the
-- claim. Returns the token of the lease, the list of the job, and the job's id.
local function lease_of(hold)
  local held = redis.call('HGET', CLAIMS, hold)
  if not held then return end
  local token, list = string.match(held, '^(%S+) (.*)$')
  if list and not own_queue(list) then list = LIST end
  local nameless = string.byte(hold) == 32 and token and string.find(hold, token, 2, true) == 2
  return token, list, nameless and '' or hold
end

-- Ends a lease, frees its slot, and removes the job from PROCESSING, which Bananas' own tools read.
local function end_lease(hold, list, id)
  redis.call('ZREM', LEASES, hold)
  redis.call('HDEL', CLAIMS, hold)
  if list then try('ZREM', SLOTS .. route_of(list), hold) end
  try('LREM', PROCESSING, 1, id or hold)
end

local function look(id) return look_at(JOB .. id) end

-- Returns the time at which a job was completed; '' if its result is not that of a completed job. Bananas' scheduler may
-- push a completed job again with an older record.
local function done_at(id)
  local result = try('HMGET', RESULT .. id, 'status', 'completed_at')
  return result[1] == 'completed' and result[2] or ''
end

-- Ends the call if its user may not publish to the channel of a job. A script calls this before its first write for the
-- job, as the server would refuse the PUBLISH after a part of them.
local function may_tell(id)
  local may = redis.acl_check_cmd
  if may and not may('PUBLISH', NOTIFY .. id, 'ready') then redis.call('PUBLISH', NOTIFY .. id, 'ready') end
end

local function tell(id, now, duration, name, value)
  publish_result(RESULT .. id, NOTIFY .. id, now, duration, name, value)
end

-- Adds an id of that list to the dead letters, with the record that has the reason, if there is one.
local function bury(id, record, list)
  try('LPUSH', DEAD, id)
  if record then redis.call('SET', JOB .. id, record, 'PX', DEAD_FOR) end
  redis.call('DEL', LOST .. id)
  count(list, 'dead')
end
