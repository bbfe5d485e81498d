--- @include protocols/bananas
-- Fires a slot of a cron schedule of Bananas: stores the job and sets the schedule's next slot, in one step. Changes
-- nothing if the schedule has changed, or if a scheduler of Bananas has its lock.
-- KEYS[1]    the list of the job
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the schedule's name
-- ARGV[3]    the schedule as the caller read it
-- ARGV[4]    the next slot as the caller read it
-- ARGV[5]    the slot after that
-- ARGV[6]    the token of the lock
-- ARGV[7]    the duration of the lock in ms
-- ARGV[8]    the job's id
-- ARGV[9..]  the job's record as a template (`drafted`)
-- Returns 'fired', 'changed' or 'locked'
local now, state = clock(ARGV[1]), SCHEDULE .. ARGV[2]
if redis.call('HGET', CRONS, ARGV[2]) ~= ARGV[3] then return 'changed' end
if (try('HGET', state, 'next_run') or '') ~= ARGV[4] then return 'changed' end
redis.call('LLEN', KEYS[1]) -- ends the call before its first write if the key is no list: the slot is tried again
-- Bananas' scheduler reads the state before it takes the lock, so one that has read the old state finds the lock taken.
if not redis.call('SET', SCHEDULE_LOCK .. ARGV[2], ARGV[6], 'NX', 'PX', ARGV[7]) then return 'locked' end
local at = string.sub(iso(now), 1, 19) .. 'Z'
redis.pcall('HINCRBY', state, 'run_count', 1)
redis.call('HDEL', state, 'last_error')
redis.call('HSET', state, 'last_run', at, 'next_run', ARGV[5], 'last_success', at)
redis.call('SET', JOB .. ARGV[8], (drafted(9, now)))
redis.call('LPUSH', KEYS[1], ARGV[8])
count(KEYS[1], 'created')
return 'fired'
