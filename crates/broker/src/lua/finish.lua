-- Ends a job with its result, if the token is the one in force. Said twice, it changes nothing.
-- KEYS    the job's hash, leases, the reply list
-- ARGV    now, id, token, output, stdout, stderr, how long the reply is kept in ms
-- Returns 'finished', or 'stale' if the job is not this worker's any more
local has = redis.call('HMGET', KEYS[1], 'status', 'mw_token', 'mw_reply')
if has[2] ~= ARGV[3] then return 'stale' end
if has[1] == 'finished' then return 'finished' end
if has[1] ~= 'started' then return 'stale' end
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('HDEL', KEYS[1], 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr')
redis.call('HSET', KEYS[1], 'status', 'finished', 'output', ARGV[4],
  'updated_at', iso(clock(ARGV[1])))
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'mw_stdout', ARGV[5]) end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'mw_stderr', ARGV[6]) end
reply(has[3], KEYS[3], ARGV[4], ARGV[7])
return 'finished'
