-- Runs an ended job again, as if it had never run. What it waited for is not asked again.
-- KEYS    the job's hash, its queue, the control queue of its type
-- ARGV    now, who, id
-- Returns 'queued', 'unfinished' if it has not ended, or 'missing'
if not there(KEYS[1]) then return 'missing' end
local id, now = ARGV[3], clock(ARGV[1])
local has = read(KEYS[1], 'status', 'script_type', 'worker_id', 'actor_id')
if not final(has.status) then return 'unfinished' end
redis.call('LPUSH', KEYS[2], id)
redis.call('DEL', REPLY .. id, OLD_REPLY .. id, LOG .. id)
for _, set in ipairs({ENDED, DEAD, STOPS, WATCH}) do redis.pcall('ZREM', set, id) end
unqueue(KEYS[3], id) -- a request to stop the run before
redis.call('HDEL', KEYS[1], 'output', 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_token',
  'mw_attempt', 'mw_lost', 'mw_dead', 'mw_stop', 'mw_progress', 'mw_lock', 'mw_seen',
  'mw_waiting', 'mw_expires')
redis.call('HSET', KEYS[1], 'status', 'dispatched', 'updated_at', iso(now))
double(id, KEYS[1], KEYS[2], has.script_type, worker_of(has), now)
mind(id, KEYS[1], now)
event(id, 'requeue', ARGV[2])
return 'queued'
