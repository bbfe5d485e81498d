-- Forgets a job that does not run.
-- KEYS    the job's hash, leases, the queue it may wait in, the reply list
-- ARGV    now, id
-- Returns 'deleted', 'running' if a worker holds it, or 'missing'
if not there(KEYS[1]) then return 'missing' end
local lease = redis.call('ZSCORE', KEYS[2], ARGV[2])
if lease and tonumber(lease) > clock(ARGV[1]) then return 'running' end
redis.call('ZREM', KEYS[2], ARGV[2])
unqueue(KEYS[3], ARGV[2])
redis.call('DEL', KEYS[1], KEYS[4])
return 'deleted'
