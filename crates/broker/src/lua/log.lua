--- @include base
-- Keeps what a run prints, and how far it is, if the token is the one in force.
-- KEYS    1: the job's hash
-- ARGV    1: now
--         2: id
--         3: token
--         4: progress ('' if it says nothing new)
--         5: most lines kept
--         6: how long they are kept in ms
--         … per line: its stream, the line
-- Returns 'logged', or 'stale' if the job is not this worker's any more
local has = read(KEYS[1], 'status', 'mw_token')
if has.mw_token ~= ARGV[3] or has.status ~= 'started' then return 'stale' end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'mw_progress', ARGV[4]) end
for a = 7, #ARGV, 2 do
  redis.call('XADD', LOG .. ARGV[2], 'MAXLEN', '~', ARGV[5], '*', ARGV[a], ARGV[a + 1])
end
if #ARGV > 6 then redis.call('PEXPIRE', LOG .. ARGV[2], ARGV[6]) end
return 'logged'
