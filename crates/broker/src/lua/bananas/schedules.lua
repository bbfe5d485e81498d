--- @include base
--- @flags allow-oom
-- Lists the cron schedules of jobs of Bananas with their states. The caller finds those that are due; fire.lua runs
-- them.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- Returns [1]  the time in ms
--         [2]  per schedule: name, schedule, next slot, last run, number of runs ('' for what its state lacks)
local MOST = 1000 -- schedules read in one call
local now, found = clock(ARGV[1]), {}
local all = redis.call('HGETALL', CRONS)
for i = 1, math.min(#all, 2 * MOST), 2 do
  -- A key of another kind counts as an empty state.
  local state = try('HMGET', SCHEDULE .. all[i], 'next_run', 'last_run', 'run_count')
  found[#found + 1] = {all[i], all[i + 1], state[1] or '', state[2] or '', state[3] or ''}
end
return {int(now), found}
