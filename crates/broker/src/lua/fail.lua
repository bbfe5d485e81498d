--- @include complete/ending, complete/failed_attempts, complete/snooze
--- @flags allow-oom
-- Records that a run failed, if the token is the current one. The job is retried after the delay (`retries` N means
-- N + 1 runs) or snoozed; else it ends in error, as a dead letter unless it was cancelled. Repeated, it does nothing.
-- KEYS[1]   the job's hash
-- KEYS[2]   the queue that it came from
-- ARGV[1]   the time in ms, '0' for the server's clock
-- ARGV[2]   the job's id
-- ARGV[3]   the fencing token
-- ARGV[4]   the message
-- ARGV[5]   the traceback ('' for none)
-- ARGV[6]   1 if a retry may help, 'snooze' to put the job off
-- ARGV[7]   stdout ('' for none)
-- ARGV[8]   stderr ('' for none)
-- ARGV[9]   most retries of one job
-- ARGV[10]  the delay in ms
-- ARGV[11]  the reason of the dead letter ('' if the run was cancelled)
-- ARGV[12]  the kind of failure, for statistics
-- ARGV[13]  most snoozes of one job
-- ARGV[14]  longest time from the first to the last snooze in ms
-- Returns 'requeued'  the job runs again
--         'failed'    the job has ended
--         'stale'     the token is not the current one
local key, id = KEYS[1], ARGV[2]
local has = record(key, 'mw_token', 'mw_worker', 'mw_attempt', 'retries', 'mw_stop', 'mw_started', 'mw_failed_attempts')
if has.mw_token ~= ARGV[3] then return respond('stale') end
if has.status == 'error' then return respond('failed') end
if has.status ~= 'started' then return respond('stale') end
local now = clock(ARGV[1])
if ARGV[6] == 'snooze' and not has.mw_stop then
  local most, longest = tonumber(ARGV[13]), tonumber(ARGV[14])
  local from, pause = has.mw_queue or KEYS[2], tonumber(ARGV[10])
  if snooze(id, key, has, from, pause, now, most, longest) then return respond('requeued') end
  ARGV[4] = 'snoozed more than ' .. most .. ' times or 7 days: ' .. ARGV[4]
end
local retries = math.min(tonumber(has.retries or '') or 0, tonumber(ARGV[9]))
local again = ARGV[6] == '1' and (tonumber(has.mw_attempt or '') or 0) <= retries and not has.mw_stop
unlease(id, key, has)
redis.call('HDEL', key, 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_stop')
note_attempt(key, has, has.mw_stop and 'cancelled' or 'failed', ARGV[4], now)
write_error(key, again and 'dispatched' or 'error', ARGV[4], now)
if ARGV[5] ~= '' then redis.call('HSET', key, 'mw_traceback', ARGV[5]) end
if ARGV[7] ~= '' then redis.call('HSET', key, 'mw_stdout', ARGV[7]) end
if ARGV[8] ~= '' then redis.call('HSET', key, 'mw_stderr', ARGV[8]) end
local queue = has.mw_queue or KEYS[2]
ran(has.mw_queue, has.mw_started, now)
if again then
  redis.call('HDEL', key, 'mw_token')
  event(id, 'retry', has.mw_worker, ARGV[4])
  count(queue, 'retried')
  local delay = tonumber(ARGV[10])
  local put = delay > 0 and type(try('ZADD', DELAYED, int(now + delay), id)) == 'number'
  return respond((put or deliver('LPUSH', id, key, has, queue, now)) and 'requeued' or 'failed')
end
local dead = ARGV[11] ~= '' and not has.mw_stop and ARGV[11] or nil
count(queue, 'error:' .. ARGV[12])
finalize(id, key, has, 'error', ARGV[4], now, dead, has.mw_worker)
return respond('failed')
