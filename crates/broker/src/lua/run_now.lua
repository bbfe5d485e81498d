--- @include ending
--- @flags allow-oom
-- Lets a job that waits for its time, or for its next run, run now.
-- KEYS    1: the job's hash
--         2: its queue
-- ARGV    1: now
--         2: who
--         3: id
-- Returns 'queued', 'waiting' if it waits for other jobs and not for a time any more, 'ready' if it waits for
--         no time, 'running', 'ended', or 'missing'
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
redis.call('HSET', key, 'updated_at', stamp(now))
event(id, 'run_now', ARGV[2])
deliver('LPUSH', id, key, has, has.mw_queue or KEYS[2], now)
return respond('queued')
