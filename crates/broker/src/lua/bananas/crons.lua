--- @include base
--- @flags allow-oom
-- Gives the cron schedules of jobs of Bananas, and how far each is. What is due the caller works out, and `fire` does.
-- KEYS
-- ARGV    1: now
-- Returns the time; per schedule: its name, what is kept of it, its next slot, when it last ran, how often ('' where
--         its state does not say it)
local MOST = 1000 -- schedules looked at in one call
local now, found = clock(ARGV[1]), {}
local all = redis.call('HGETALL', CRONS)
for i = 1, math.min(#all, 2 * MOST), 2 do
  -- A state of another kind says nothing.
  local state = redis.pcall('HMGET', SCHEDULE .. all[i], 'next_run', 'last_run', 'run_count')
  found[#found + 1] = {all[i], all[i + 1], state[1] or '', state[2] or '', state[3] or ''}
end
return {int(now), found}
