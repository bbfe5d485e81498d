--- @include ending
--- @flags allow-oom
-- Hands a job back unrun, if the token is the one in force: first in its queue, and the attempt is not
-- counted. One that somebody wants stopped ends instead.
-- KEYS    1: the job's hash
--         2: the queue it came from
-- ARGV    1: now
--         2: id
--         3: token
-- Returns 'released', or 'stale' if the job is not this worker's any more
local key, id = KEYS[1], ARGV[2]
local has = record(key, 'mw_token', 'mw_worker', 'mw_stop', 'mw_attempt')
if has.mw_token ~= ARGV[3] or has.status ~= 'started' then return respond('stale') end
local now = clock(ARGV[1])
unlease(id, key, has)
redis.call('HSET', key, 'mw_attempt', math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1))
if has.mw_stop then
  fail_job(id, key, has, has.mw_stop, now, nil, has.mw_worker)
  return respond('released')
end
redis.call('HDEL', key, 'mw_token')
redis.call('HSET', key, 'status', 'dispatched', 'updated_at', stamp(now))
event(id, 'release', has.mw_worker)
count(has.mw_queue, 'released')
deliver('RPUSH', id, key, has, has.mw_queue or KEYS[2], now)
return respond('released')
