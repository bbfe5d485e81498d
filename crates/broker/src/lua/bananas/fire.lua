--- @include bananas
-- Runs a slot of a cron schedule of jobs of Bananas: stores its job and moves the schedule on in one step, if it is
-- still as it was read, and no scheduler of Bananas that knows it too is about to do the same.
-- KEYS    1: the list
-- ARGV    1: now
--         2: name
--         3: what is kept of it
--         4: its next slot as it was read
--         5: the one after that
--         6: a token
--         7: how long the lock stays in ms
--         8: the job's id
--         9: its record with gaps for times
-- Returns 'fired', 'changed' or 'locked'
local now, state = clock(ARGV[1]), SCHEDULE .. ARGV[2]
if redis.call('HGET', CRONS, ARGV[2]) ~= ARGV[3] then return 'changed' end
if (redis.pcall('HGET', state, 'next_run') or '') ~= ARGV[4] then return 'changed' end
redis.call('LLEN', KEYS[1]) -- should it be no list, the slot waits
-- Theirs reads the state, then takes the lock: one that has read it before this finds the lock taken, and reads anew.
if not redis.call('SET', SCHEDULE_LOCK .. ARGV[2], ARGV[6], 'NX', 'PX', ARGV[7]) then return 'locked' end
local at = string.sub(stamp(now), 1, 19) .. 'Z'
redis.pcall('HINCRBY', state, 'run_count', 1)
redis.call('HDEL', state, 'last_error')
redis.call('HSET', state, 'last_run', at, 'next_run', ARGV[5], 'last_success', at)
redis.call('SET', JOB .. ARGV[8], (drafted(9, now)))
redis.call('LPUSH', KEYS[1], ARGV[8])
count(KEYS[1], 'created')
return 'fired'
