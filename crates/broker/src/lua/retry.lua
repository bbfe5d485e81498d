-- Runs an ended job again, as if it had never run.
-- KEYS    the job's hash, its queue
-- ARGV    now, who, id
-- Returns 'queued', 'unfinished' if it has not ended, or 'missing'
if not there(KEYS[1]) then return 'missing' end
local id = ARGV[3]
if not final(redis.call('HGET', KEYS[1], 'status')) then return 'unfinished' end
redis.call('LPUSH', KEYS[2], id)
redis.call('DEL', REPLY .. id, OLD_REPLY .. id, LOG .. id)
redis.call('ZREM', ENDED, id)
redis.call('ZREM', DEAD, id)
redis.call('HDEL', KEYS[1], 'output', 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_token',
  'mw_attempt', 'mw_lost', 'mw_dead', 'mw_stop', 'mw_progress')
redis.call('HSET', KEYS[1], 'status', 'dispatched', 'updated_at', iso(clock(ARGV[1])))
event(id, 'requeue', ARGV[2])
return 'queued'
