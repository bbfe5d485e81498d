--- @include complete/ending, queue/remove_from_lists
--- @flags allow-oom
-- Deletes a job that is not running, with its reply, its log and its place in its batch.
-- KEYS[1]    the job's hash
-- KEYS[2]    the queue that it may wait in
-- KEYS[3..]  other queues that may hold a job of a foreign client
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3]    the job's id
-- Returns 'deleted'  the job is gone
--         'running'  a worker has it under a lease
--         'missing'  there is no such job
if not exists(KEYS[1]) then return respond('missing') end
local id = ARGV[3]
local lease = redis.call('ZSCORE', LEASES, id)
if lease and tonumber(lease) > clock(ARGV[1]) then return respond('running') end
local has = record(KEYS[1], 'mw_lock', 'script_type', 'worker_id', 'actor_id')
unlease(id, KEYS[1], has)
if has.mw_bananas and not final(has.status) then tell_bananas(id, KEYS[1], false, 'deleted', clock(ARGV[1])) end
if has.mw_batch then leave(id, has.mw_batch, false, clock(ARGV[1])) end
drop_slot(has.mw_queue or KEYS[2], id, has)
unclaim(id, has)
unqueue(KEYS[2], id)
for k = 3, #KEYS do unqueue(KEYS[k], id) end
unlock(has.mw_lock, id)
unlist(id, has)
drop_job(id)
event(id, 'delete', ARGV[2])
return respond('deleted')
