-- Bananas: whose a job is, and how it ends.

-- The token under which ours run a job, and the list that it came from.
local function holder(id)
  local held = redis.call('HGET', HELD, id)
  if not held then return end
  return string.match(held, '^(%S+) (.*)$')
end

-- The job is ours no more. It was listed among those that run for Bananas' own tools.
local function let_go(id)
  redis.call('ZREM', LEASES, id)
  redis.call('HDEL', HELD, id)
  redis.pcall('LREM', PROCESSING, 1, id)
end

local function look(id) return look_at(JOB .. id) end

local function tell(id, now, duration, name, value)
  announce(RESULT .. id, NOTIFY .. id, now, duration, name, value)
end

-- Puts an id among the dead letters, with the record that says why, if there is one.
local function bury(id, record)
  redis.pcall('LPUSH', DEAD, id)
  if record then redis.call('SET', JOB .. id, record, 'PX', DEAD_FOR) end
  redis.call('DEL', LOST .. id)
end
