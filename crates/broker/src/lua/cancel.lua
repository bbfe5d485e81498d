--- @include cancel_waiting, cancel_requests
--- @flags allow-oom
-- Stops a job. One that waits ends in error at once. Of one that runs, its worker is told through the
-- control queue, and ends it; `force` ends it here, and its worker learns so at its next renewal.
-- KEYS    1: the job's hash
--         2: the queue it waits in
--         3: the control queue of its type
--         … those of the instances that may run it without a lease
-- ARGV    1: now
--         2: who
--         3: id
--         4: reason
--         5: 1 to force
-- Returns 'cancelled', 'stopping', 'ended' if it had ended already, or 'missing'
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
