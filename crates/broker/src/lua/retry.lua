--- @include complete/ending, queue/remove_from_lists, orphans/list
-- Runs an ended or stale job again as if it had never run. Its prerequisites are not checked again; a batch that has
-- not ended waits for it once more.
-- KEYS[1]  the job's hash
-- KEYS[2]  its queue
-- KEYS[3]  the control queue of its type
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the job's id
-- Returns 'queued'      the job runs again
--         'unfinished'  the job has not ended and is not stale
--         'missing'     there is no such job

-- Makes a batch that has not ended wait for the job once more.
local function rejoin(id, batch, status)
  local has = batches().state(batch)
  if not has.total or has.ended or has.cancelled then return end
  if redis.call('SADD', MEMBERS .. batch, id) == 0 then return end
  redis.call('HINCRBY', BATCHES .. batch, status == 'finished' and 'succeeded' or 'failed', -1)
end

if not exists(KEYS[1]) then return respond('missing') end
local id, now = ARGV[3], clock(ARGV[1])
local has = record(KEYS[1], 'script_type', 'worker_id', 'actor_id', 'mw_stop')
local stale = not final(has.status)
if stale and (not is_stale(id, now) or has.mw_stop or redis.call('ZSCORE', LEASES, id)
  or redis.call('ZSCORE', DELAYED, id) or redis.call('LPOS', KEYS[2], id)) then return respond('unfinished') end
if not stale and has.mw_with and more(KEYS[1], has).mw_batch then rejoin(id, has.mw_batch, has.status) end
local stands = not has.mw_with or try_enter(KEYS[2], id, more(KEYS[1], has), now)
if stands then redis.call('LPUSH', KEYS[2], id) end
-- The client may wait on either reply list.
if LEGACY and stale and not has.mw_reply then redis.call('HSETNX', KEYS[1], 'mw_legacy', 'both') end
redis.call('DEL', REPLY .. id, OLD_REPLY .. id, LOG .. id)
for _, set in ipairs({ENDED, DEAD, STOPS}) do try('ZREM', set, id) end
unwatch(id)
unqueue(KEYS[3], id) -- a request to cancel the last run
redis.call('HDEL', KEYS[1], OUTPUT, 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_token',
  'mw_attempt', 'mw_lost', 'mw_started', 'mw_dead', 'mw_stop', 'mw_progress', 'mw_lock', 'mw_seen',
  'mw_waiting', 'mw_expires', 'mw_alone', 'mw_snoozes', 'mw_snoozed', 'mw_start_by')
redis.call('HSET', KEYS[1], 'status', 'dispatched', updated(now))
if stands then
  dual_write(id, KEYS[1], KEYS[2], has.script_type, worker_of(has), now)
  track_fallback(id, KEYS[1], now)
end
local name = string.match(has.mw_unique or '', '^done (.+)$')
if name then redis.call('SET', UNIQUE .. name, id, 'NX') end -- unless another job has it by now
event(id, 'requeue', ARGV[2])
count(KEYS[2], 'requeued')
return respond('queued')
