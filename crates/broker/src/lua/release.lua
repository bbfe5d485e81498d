--- @include complete/ending
--- @flags allow-oom
-- Releases a claimed job: puts it at the front of its queue without counting the attempt, if the token is the current
-- one. A job that is to be cancelled ends instead.
-- KEYS[1]  the job's hash
-- KEYS[2]  the queue that it came from
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the job's id
-- ARGV[3]  the fencing token
-- Returns 'released'  the job is queued, or has ended
--         'stale'     the token is not the current one
local key, id = KEYS[1], ARGV[2]
local has = record(key, 'mw_token', 'mw_worker', 'mw_stop', 'mw_attempt')
if has.mw_token ~= ARGV[3] or has.status ~= 'started' then return respond('stale') end
local now = clock(ARGV[1])
local base = free_slot(id, key, has)
redis.call('HSET', key, 'mw_attempt', math.max(0, (tonumber(has.mw_attempt or '') or 0) - 1))
if has.mw_stop then
  fail_job(id, key, has, has.mw_stop, now, nil, has.mw_worker)
  if base then bring_next(base, has.mw_key) end
  return respond('released')
end
redis.call('HDEL', key, 'mw_token')
redis.call('HSET', key, 'status', 'dispatched', updated(now))
event(id, 'release', has.mw_worker)
count(has.mw_queue, 'released')
deliver('RPUSH', id, key, has, has.mw_queue or KEYS[2], now) -- takes the freed slot
return respond('released')
