--- @include telemetry
-- Stores log lines, the progress and the usage of a run, if the token is the current one.
-- KEYS[1]    the job's hash
-- ARGV[1]    the time in ms; not used
-- ARGV[2]    the job's id
-- ARGV[3]    the fencing token
-- ARGV[4]    the progress ('' if unchanged)
-- ARGV[5]    the usage ('' if unknown yet)
-- ARGV[6]    most lines kept
-- ARGV[7]    for how long they are kept in ms
-- ARGV[8..]  per line: its stream, the line
-- Returns 'logged'  the lines are stored
--         'stale'   the token is not the current one
local has = read(KEYS[1], 'status', 'mw_token', 'mw_worker')
if has.mw_token ~= ARGV[3] or has.status ~= 'started' then return 'stale' end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'mw_progress', ARGV[4]) end
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[1], 'mw_usage', ARGV[5])
  event(ARGV[2], 'usage', has.mw_worker, ARGV[5])
end
for a = 8, #ARGV, 2 do
  redis.call('XADD', LOG .. ARGV[2], 'MAXLEN', '~', ARGV[6], '*', ARGV[a], ARGV[a + 1])
end
if #ARGV > 7 then redis.call('PEXPIRE', LOG .. ARGV[2], ARGV[7]) end
return respond('logged')
