-- Stops a job that waits or runs: it ends in error, and whoever runs it learns so at its next renewal.
-- KEYS    the job's hash, leases, the queue it waits in, the reply list
-- ARGV    now, id, reason, how long the reply is kept in ms
-- Returns 'cancelled', 'ended' if it had ended already, or 'missing'
if not there(KEYS[1]) then return 'missing' end
local record = redis.call('HMGET', KEYS[1], 'status', 'mw_reply')
local status = record[1]
if status == 'finished' or status == 'error' then return 'ended' end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('HDEL', KEYS[1], 'mw_token')
redis.call('HSET', KEYS[1], 'status', 'error', 'error', ARGV[3],
  'updated_at', iso(clock(ARGV[1])))
if status ~= 'started' then unqueue(KEYS[3], ARGV[2]) end
reply(record[2], KEYS[4], ARGV[3], ARGV[4])
return 'cancelled'
