--- @include complete/ending
--- @flags allow-oom
-- Promotes a delayed job, or one that waits for its next attempt, at once.
-- KEYS[1]  the job's hash
-- KEYS[2]  its queue
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the job's id
-- Returns 'queued'   the job is in its queue
--         'waiting'  its delay is removed, but it waits for prerequisites
--         'ready'    it had no delay
--         'running', 'ended', or 'missing'
if not exists(KEYS[1]) then return respond('missing') end
local key, now, id = KEYS[1], clock(ARGV[1]), ARGV[3]
local has = record(key, 'mw_waiting')
if final(has.status) then return respond('ended') end
if has.status == 'started' then return respond('running') end
local due = tonumber(more(key, has).mw_run_at or '')
if due and due > now then
  redis.call('HSET', key, 'mw_run_at', int(now))
  has.mw_run_at = int(now)
end
if has.mw_waiting then return respond('waiting') end
if redis.call('ZREM', DELAYED, id) == 0 then return respond('ready') end
redis.call('HSET', key, updated(now))
event(id, 'run_now', ARGV[2])
deliver('LPUSH', id, key, has, has.mw_queue or KEYS[2], now)
return respond('queued')
