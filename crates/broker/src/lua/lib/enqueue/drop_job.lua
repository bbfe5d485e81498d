--- @include telemetry
-- Leaves the dependents of an ended job to resolve_dependents.lua. A blank before the id: it finished. Its record may be gone then.
local function defer_dependents(id, finished) try('LPUSH', UNRESOLVED, (finished and ' ' or '') .. id) end

-- Ends the watch of a job, which does not count as stale then (see stale.lua).
local function unwatch(id)
  try('ZREM', WATCHED, id)
  try('ZREM', STALE, 'away ' .. id, 'started ' .. id)
end

-- Watches a job for one worker with a fallback queue while that worker's queue holds it.
local function track_fallback(id, key, now)
  if redis.call('HEXISTS', key, 'mw_fallback') == 0 then return end
  try('ZADD', WATCHED, int(now + LOOK_EVERY), id)
end

-- Puts off a job in this set whose key has another type now: its record may come back.
local UNREADABLE = 60000 -- ms
local function put_off(set, id, now)
  redis.call('ZADD', set, int(now + UNREADABLE), id)
  event(id, 'defer', '', 'its key has another type')
end

-- Deletes a job with all its keys. Its dependents are left to resolve_dependents.lua.
local function drop_job(id)
  if redis.call('EXISTS', DEPENDENTS .. id) == 1 then
    defer_dependents(id, read(JOB .. id, 'status').status == 'finished')
  end
  redis.call('DEL', JOB .. id, REPLY .. id, OLD_REPLY .. id, LOG .. id)
  for _, set in ipairs({ENDED, DEAD, DELAYED, TAKEN, STARTS}) do try('ZREM', set, id) end
  unindex_job(id)
  unwatch(id)
end
