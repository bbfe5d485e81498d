-- Hands a job back unrun, if the token is the one in force: first in its queue, and the attempt is not
-- counted.
-- KEYS    the job's hash, leases, the queue it came from
-- ARGV    now, id, token
-- Returns 'released', or 'stale' if the job is not this worker's any more
local has = redis.call('HMGET', KEYS[1], 'status', 'mw_token')
if has[2] ~= ARGV[3] or has[1] ~= 'started' then return 'stale' end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('HINCRBY', KEYS[1], 'mw_attempt', -1)
redis.call('HDEL', KEYS[1], 'mw_token')
redis.call('HSET', KEYS[1], 'status', 'dispatched', 'updated_at', iso(clock(ARGV[1])))
redis.call('RPUSH', KEYS[3], ARGV[2])
return 'released'
