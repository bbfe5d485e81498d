-- Reports a run that failed, if the token is the one in force: back to the end of its queue while a retry
-- is left (`retries` N means N + 1 runs), else the job ends in error. Said twice, it changes nothing.
-- KEYS    the job's hash, leases, the queue it came from, the reply list
-- ARGV    now, id, token, message, traceback, 1 if another run may help, stdout, stderr,
--         how long the reply is kept in ms, most retries of one job
-- Returns 'requeued', 'failed', or 'stale' if the job is not this worker's any more
local has = redis.call('HMGET', KEYS[1], 'status', 'mw_token', 'mw_reply', 'mw_attempt', 'retries')
if has[2] ~= ARGV[3] then return 'stale' end
if has[1] == 'error' then return 'failed' end
if has[1] ~= 'started' then return 'stale' end
local retries = math.min(tonumber(has[5] or '') or 0, tonumber(ARGV[10]))
local again = ARGV[6] == '1' and (tonumber(has[4]) or 0) <= retries
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('HDEL', KEYS[1], 'mw_traceback', 'mw_stdout', 'mw_stderr')
redis.call('HSET', KEYS[1], 'status', again and 'dispatched' or 'error', 'error', ARGV[4],
  'updated_at', iso(clock(ARGV[1])))
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'mw_traceback', ARGV[5]) end
if ARGV[7] ~= '' then redis.call('HSET', KEYS[1], 'mw_stdout', ARGV[7]) end
if ARGV[8] ~= '' then redis.call('HSET', KEYS[1], 'mw_stderr', ARGV[8]) end
if again then
  redis.call('HDEL', KEYS[1], 'mw_token')
  redis.call('LPUSH', KEYS[3], ARGV[2])
  return 'requeued'
end
reply(has[3], KEYS[4], ARGV[4], ARGV[9])
return 'failed'
