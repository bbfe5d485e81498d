-- Bananas: whose a job is, and records whose times are still to be written. No script reads what is in a record.

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

-- What stands under a job's key: 'there' and the text, 'missing', or 'odd' if it is of another kind.
local function look(id)
  local record = redis.pcall('GET', JOB .. id)
  if not record then return 'missing', '' end
  if record.err then return 'odd', '' end
  return 'there', record
end

-- The same as a digest, which is what the caller knows of the record that it changes.
local function digest(state, record)
  return state == 'there' and redis.sha1hex(record) or state
end

-- A record from ARGV[a] on: the number of times in it, text, and per time what to add in ms and the text after
-- it; none if that number is -1. Returns it, and the place after it.
local function drafted(a, now)
  local times = tonumber(ARGV[a])
  if times < 0 then return nil, a + 1 end
  local text = {ARGV[a + 1]}
  for i = a + 2, a + 2 * times, 2 do
    text[#text + 1] = string.sub(iso(now + tonumber(ARGV[i])), 1, 23) .. '000Z'
    text[#text + 1] = ARGV[i + 1]
  end
  return table.concat(text), a + 2 + 2 * times
end

-- Writes how a job ended, and tells those who wait: Bananas' clients give up on any other word. A key of another
-- kind is left alone, and holds up no job.
local function tell(id, now, duration, name, value)
  local key, good = RESULT .. id, name ~= 'error'
  local at = string.sub(iso(now), 1, 19) .. 'Z'
  redis.pcall('HDEL', key, 'result', 'error')
  local set = redis.pcall('HSET', key, 'status', good and 'completed' or 'failed', 'completed_at', at,
    'duration_ms', duration)
  if type(set) == 'number' then
    if name then redis.call('HSET', key, name, value) end
    redis.call('PEXPIRE', key, good and RESULT_FOR or FAILURE_FOR)
  end
  redis.call('PUBLISH', NOTIFY .. id, 'ready')
end

-- Puts an id among the dead letters, with the record that says why, if there is one.
local function bury(id, record)
  redis.pcall('LPUSH', DEAD, id)
  if record then redis.call('SET', JOB .. id, record, 'PX', DEAD_FOR) end
  redis.call('DEL', LOST .. id)
end
