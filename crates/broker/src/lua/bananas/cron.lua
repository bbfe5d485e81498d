--- @include base
--- @flags allow-oom
-- Keeps a cron schedule of jobs of Bananas, or forgets it. How far it is stands where Bananas' own scheduler keeps that,
-- and stays when it is forgotten: a scheduler of Bananas may know it too.
-- KEYS
-- ARGV    1: now
--         2: name
--         3: what is to be kept of it ('' to forget it)
--         4: its next slot
--         5: 1 to take the place of one of that name
-- Returns 'kept', 'replaced', 'exists', 'full', 'forgotten' or 'missing'
local MOST = 1000 -- schedules: each worker looks at all of them
local name, kept = ARGV[2], ARGV[3]
local there = redis.call('HEXISTS', CRONS, name) == 1
if kept == '' then
  redis.call('HDEL', CRONS, name)
  return there and 'forgotten' or 'missing'
end
if there and ARGV[5] ~= '1' then return 'exists' end
if not there and redis.call('HLEN', CRONS) >= MOST then return 'full' end
-- A state of another kind ends the call here.
redis.call('HSET', SCHEDULE .. name, 'next_run', ARGV[4])
redis.call('HSET', CRONS, name, kept)
return there and 'replaced' or 'kept'
