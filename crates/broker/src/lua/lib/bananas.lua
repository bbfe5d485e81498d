--- @include bananas_record, publish_result
-- Bananas: whose a job is, where it belongs, and how it ends.

-- The route of a list; those without one are for `default`.
local function route_of(list)
  return string.sub(list, 1, #ROUTED) == ROUTED and string.match(list, '^[^:]+', #ROUTED + 1) or 'default'
end

-- Counts what happens to the jobs of a list, for dashboards.
local function count(list, what, n) redis.pcall('HINCRBY', STATS, list .. ' ' .. what, n or 1) end

-- Under what ours hold a job is its id; but jobs of Bananas' cron have none, and are held each under a blank, the token
-- and its place in the claim. Gives the token under which ours run it, the list that it came from, and its id.
local function holder(hold)
  local held = redis.call('HGET', HELD, hold)
  if not held then return end
  local token, list = string.match(held, '^(%S+) (.*)$')
  local nameless = string.byte(hold) == 32 and token and string.find(hold, token, 2, true) == 2
  return token, list, nameless and '' or hold
end

-- The job is ours no more, and its slot is free. It was listed among those that run for Bananas' own tools.
local function let_go(hold, list, id)
  redis.call('ZREM', LEASES, hold)
  redis.call('HDEL', HELD, hold)
  if list then redis.pcall('ZREM', SLOTS .. route_of(list), hold) end
  redis.pcall('LREM', PROCESSING, 1, id or hold)
end

local function look(id) return look_at(JOB .. id) end

-- When a job was done, if its result says that it is. Bananas' scheduler may push such a job with a record from before.
local function done_at(id)
  local result = redis.pcall('HMGET', RESULT .. id, 'status', 'completed_at')
  return result[1] == 'completed' and result[2] or ''
end

local function tell(id, now, duration, name, value)
  publish_result(RESULT .. id, NOTIFY .. id, now, duration, name, value)
end

-- Puts an id of that list among the dead letters, with the record that says why, if there is one.
local function bury(id, record, list)
  redis.pcall('LPUSH', DEAD, id)
  if record then redis.call('SET', JOB .. id, record, 'PX', DEAD_FOR) end
  redis.call('DEL', LOST .. id)
  count(list, 'dead')
end
