--- @include base
--- @flags allow-oom
-- Ends the registry entries and the leases of dead workers, so that reclaim.lua returns their jobs.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the number of workers
-- ARGV[3..]  the workers; the number of their registry entries (PREFETCH_LISTS), the entries; the ids of jobs whose lease is
--            to be checked
-- Returns the number of leases ended
local now = clock(ARGV[1])
local first = 3 + tonumber(ARGV[2])
local last, dead, ended = first + tonumber(ARGV[first]), {}, 0
for i = 3, first - 1 do dead[ARGV[i]] = true end
-- An earlier end stays: ids may still be pushed to the prefetch list for a time after it.
for i = first + 1, last do redis.call('ZADD', PREFETCH_LISTS, 'LT', int(now), ARGV[i]) end
for i = last + 1, #ARGV do
  local has = read(JOB .. ARGV[i], 'mw_worker')
  if dead[has.mw_worker or ''] then
    ended = ended + redis.call('ZADD', LEASES, 'XX', 'LT', 'CH', int(now), ARGV[i])
  end
end
return ended
