-- Ends a job with its result, if the token is the one in force. Said twice, it changes nothing.
-- KEYS    the job's hash
-- ARGV    now, id, token, output, stdout, stderr
-- Returns 'finished', or 'stale' if the job is not this worker's any more
local has = read(KEYS[1], 'status', 'mw_token', 'mw_reply', 'mw_legacy', 'mw_worker')
if has.mw_token ~= ARGV[3] then return 'stale' end
if has.status == 'finished' then return 'finished' end
if has.status ~= 'started' then return 'stale' end
local now = clock(ARGV[1])
redis.call('ZREM', LEASES, ARGV[2])
redis.call('HDEL', KEYS[1], 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_stop')
redis.call('HSET', KEYS[1], 'status', 'finished', 'output', ARGV[4], 'updated_at', iso(now))
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'mw_stdout', ARGV[5]) end
if ARGV[6] ~= '' then redis.call('HSET', KEYS[1], 'mw_stderr', ARGV[6]) end
close(ARGV[2], KEYS[1], has, 'finished', ARGV[4], now, nil, has.mw_worker)
return 'finished'
