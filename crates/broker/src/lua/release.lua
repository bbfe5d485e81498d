-- Hands a job back unrun, if the token is the one in force: first in its queue, and the attempt is not
-- counted. One that somebody wants stopped ends instead.
-- KEYS    the job's hash, the queue it came from
-- ARGV    now, id, token
-- Returns 'released', or 'stale' if the job is not this worker's any more
local has = read(KEYS[1], 'status', 'mw_token', 'mw_reply', 'mw_legacy', 'mw_worker', 'mw_stop',
  'mw_attempt', 'mw_queue')
if has.mw_token ~= ARGV[3] or has.status ~= 'started' then return 'stale' end
local now, id = clock(ARGV[1]), ARGV[2]
redis.call('ZREM', LEASES, id)
redis.call('HSET', KEYS[1], 'mw_attempt', math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1))
if has.mw_stop then
  fault(id, KEYS[1], has, has.mw_stop, now, nil, has.mw_worker)
  return 'released'
end
redis.call('HDEL', KEYS[1], 'mw_token')
redis.call('HSET', KEYS[1], 'status', 'dispatched', 'updated_at', iso(now))
event(id, 'release', has.mw_worker)
deliver('RPUSH', id, KEYS[1], has, has.mw_queue or KEYS[2], now)
return 'released'
