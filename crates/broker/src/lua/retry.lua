-- Runs an ended job again, as if it had never run.
-- KEYS    the job's hash, its queue, the reply list
-- ARGV    now, id
-- Returns 'queued', 'unfinished' if it has not ended, or 'missing'
if not there(KEYS[1]) then return 'missing' end
local status = redis.call('HGET', KEYS[1], 'status')
if status ~= 'finished' and status ~= 'error' then return 'unfinished' end
redis.call('LPUSH', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[3])
redis.call('HDEL', KEYS[1], 'output', 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr',
  'mw_token', 'mw_attempt', 'mw_lost')
redis.call('HSET', KEYS[1], 'status', 'dispatched', 'updated_at', iso(clock(ARGV[1])))
return 'queued'
