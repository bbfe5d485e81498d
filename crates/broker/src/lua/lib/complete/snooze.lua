--- @include complete/ending
-- Snoozes of jobs.

-- Puts a started job off without counting its attempt, at most `most` times and until `longest` ms after the first
-- time. Returns false and changes nothing after that.
local function snooze(id, key, has, from, pause, now, most, longest)
  local had = redis.call('HMGET', key, 'mw_snoozes', 'mw_snoozed')
  local times, first = (tonumber(had[1] or '') or 0) + 1, tonumber(had[2] or '') or now
  if times > most or now + pause - first > longest then return false end
  unlease(id, key, has)
  redis.call('HDEL', key, 'mw_token', 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr')
  redis.call('HSET', key, 'status', 'dispatched', 'mw_snoozes', times, 'mw_snoozed', int(first),
    'mw_attempt', math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1), updated(now))
  ran(has.mw_queue, has.mw_started, now)
  event(id, 'snooze', has.mw_worker)
  count(from, 'released')
  local due = pause > 0 and type(try('ZADD', DELAYED, int(now + pause), id)) == 'number'
  if not due then deliver('LPUSH', id, key, has, from, now) end
  return true
end
