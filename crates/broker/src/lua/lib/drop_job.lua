--- @include base
-- Leaves it to settle to tell those that wait for a job that has ended. The blank says that it finished,
-- should its record be gone by then.
local function defer_dependents(id, finished) redis.pcall('LPUSH', SETTLE, (finished and ' ' or '') .. id) end

-- A job is looked after no longer, and does not count as stale: see stale.lua.
local function unwatch(id)
  redis.pcall('ZREM', WATCH, id)
  redis.pcall('ZREM', STALE, 'away ' .. id, 'started ' .. id)
end

-- A job for one worker that may fall back to others is looked at while it stands in that worker's queue.
local function track_fallback(id, key, now)
  if redis.call('HEXISTS', key, 'mw_fallback') == 0 then return end
  redis.pcall('ZADD', WATCH, int(now + LOOK_EVERY), id)
end

-- Everything that is kept of a job, gone. Those that wait for it learn so from settle.
local function drop_job(id)
  if redis.call('EXISTS', NEXT .. id) == 1 then
    defer_dependents(id, read(JOB .. id, 'status').status == 'finished')
  end
  redis.call('DEL', JOB .. id, REPLY .. id, OLD_REPLY .. id, LOG .. id)
  for _, set in ipairs({ENDED, DEAD, DELAYED, TAKEN}) do redis.pcall('ZREM', set, id) end
  unwatch(id)
end
