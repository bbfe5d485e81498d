--- @include base
--- @flags allow-oom
-- Ends the listener entries and the leases of dead workers, so that reclaim takes back what they held.
-- KEYS
-- ARGV    now, number of workers, the workers, number of their listener entries, the entries; per lease to be
--         looked at: the job's id
-- Returns the number of leases ended
local now = clock(ARGV[1])
local first = 3 + tonumber(ARGV[2])
local last, dead, ended = first + tonumber(ARGV[first]), {}, 0
for i = 3, first - 1 do dead[ARGV[i]] = true end
-- An earlier end stays: it tells how long an id may still come there.
for i = first + 1, last do redis.call('ZADD', FEEDS, 'LT', int(now), ARGV[i]) end
for i = last + 1, #ARGV do
  local has = read(JOB .. ARGV[i], 'mw_worker')
  if dead[has.mw_worker or ''] then
    ended = ended + redis.call('ZADD', LEASES, 'XX', 'LT', 'CH', int(now), ARGV[i])
  end
end
return ended
