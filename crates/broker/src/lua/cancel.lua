--- @include queue/cancel_waiting, queue/cancel_requests
--- @flags allow-oom
-- Cancels a job. A waiting job ends in error at once; a running one is cancelled by its worker, which gets a request on
-- the control queue. With force, a running job ends here, and its worker learns so at its next renewal.
-- KEYS[1]    the job's hash
-- KEYS[2]    the queue that it waits in
-- KEYS[3]    the control queue of its type
-- KEYS[4..]  control queues of the instances that may run it without a lease
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3]    the job's id
-- ARGV[4]    the reason
-- ARGV[5]    1 to force
-- Returns 'cancelled'  the job has ended now
--         'stopping'   the worker has the request
--         'ended'      the job had ended before
--         'missing'    there is no such job
if not exists(KEYS[1]) then return respond('missing') end
local now, id = clock(ARGV[1]), ARGV[3]
local has = record(KEYS[1], 'mw_lock', 'mw_stop', 'mw_token', 'script_type', 'worker_id', 'actor_id')
if final(has.status) then return respond('ended') end
if has.status == 'started' and ARGV[5] ~= '1' then
  if has.mw_stop then return respond('stopping') end
  redis.call('HSET', KEYS[1], 'mw_stop', ARGV[4], 'mw_with', '1')
  ask_to_stop(id, has, KEYS[3], {unpack(KEYS, 4)})
  event(id, 'stop', ARGV[2], ARGV[4])
  return respond('stopping')
end
unlease(id, KEYS[1], has)
cancel_waiting(id, KEYS[1], has, ARGV[4], KEYS[2], now, ARGV[2])
return respond('cancelled')
