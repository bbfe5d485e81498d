-- Forgets a job that does not run.
-- KEYS    the job's hash, the queue it may wait in
-- ARGV    now, who, id
-- Returns 'deleted', 'running' if a worker holds it, or 'missing'
if not there(KEYS[1]) then return 'missing' end
local id = ARGV[3]
local lease = redis.call('ZSCORE', LEASES, id)
if lease and tonumber(lease) > clock(ARGV[1]) then return 'running' end
redis.call('ZREM', LEASES, id)
local has = read(KEYS[1], 'mw_lock', 'mw_reply', 'mw_queue', 'script_type', 'worker_id', 'actor_id')
unqueue(KEYS[2], id)
unlock(has.mw_lock, id)
unlist(id, has)
forget(id)
event(id, 'delete', ARGV[2])
return 'deleted'
