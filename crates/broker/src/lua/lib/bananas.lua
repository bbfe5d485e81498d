-- Bananas: whose a job is, where it belongs, and how it ends.

-- The route of a list; those without one are for `default`.
local function route_of(list)
  return string.sub(list, 1, #ROUTED) == ROUTED and string.match(list, '^[^:]+', #ROUTED + 1) or 'default'
end

-- Counts what happens to the jobs of a list, for dashboards (seed 4).
local function count(list, what, n) redis.pcall('HINCRBY', STATS, list .. ' ' .. what, n or 1) end

-- The token under which ours run a job, and the list that it came from.
local function holder(id)
  local held = redis.call('HGET', HELD, id)
  if not held then return end
  return string.match(held, '^(%S+) (.*)$')
end

-- The job is ours no more, and its slot is free. It was listed among those that run for Bananas' own tools.
local function let_go(id, list)
  redis.call('ZREM', LEASES, id)
  redis.call('HDEL', HELD, id)
  if list then redis.pcall('ZREM', SLOTS .. route_of(list), id) end
  redis.pcall('LREM', PROCESSING, 1, id)
end

local function look(id) return look_at(JOB .. id) end

local function tell(id, now, duration, name, value)
  announce(RESULT .. id, NOTIFY .. id, now, duration, name, value)
end

-- Puts an id of that list among the dead letters, with the record that says why, if there is one.
local function bury(id, record, list)
  redis.pcall('LPUSH', DEAD, id)
  if record then redis.call('SET', JOB .. id, record, 'PX', DEAD_FOR) end
  redis.call('DEL', LOST .. id)
  count(list, 'dead')
end
