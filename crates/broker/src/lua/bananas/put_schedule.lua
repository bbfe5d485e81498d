--- @include base
--- @flags allow-oom
-- Stores or deletes a cron schedule of jobs of Bananas. Its state is where Bananas' own scheduler keeps it, and stays
-- when the schedule is deleted, since a scheduler of Bananas may use it.
-- KEYS     none
-- ARGV[1]  the time in ms; not used
-- ARGV[2]  the schedule's name
-- ARGV[3]  the schedule ('' to delete it)
-- ARGV[4]  its next slot
-- ARGV[5]  1 to replace a schedule of that name
-- Returns 'kept', 'replaced', 'exists', 'full', 'forgotten' or 'missing'
local MOST = 1000 -- schedules: each worker reads all of them
local name, kept = ARGV[2], ARGV[3]
local there = redis.call('HEXISTS', CRONS, name) == 1
if kept == '' then
  redis.call('HDEL', CRONS, name)
  return there and 'forgotten' or 'missing'
end
if there and ARGV[5] ~= '1' then return 'exists' end
if not there and redis.call('HLEN', CRONS) >= MOST then return 'full' end
-- Ends the call if the key of the state is of another kind.
redis.call('HSET', SCHEDULE .. name, 'next_run', ARGV[4])
redis.call('HSET', CRONS, name, kept)
return there and 'replaced' or 'kept'
