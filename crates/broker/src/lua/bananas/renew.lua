--- @include protocols/bananas
--- @flags allow-oom
-- Renews a worker's leases of jobs of Bananas, its registry entries (PREFETCH_LISTS) and its routes: the heartbeat.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the lease in ms
-- ARGV[3]    for how long a registry entry counts as alive in ms
-- ARGV[4]    the number of registry entries
-- ARGV[5..]  the entries; the number of routes, the routes; per job: lease id, fencing token
-- Returns the lease ids that this worker has lost
local now = clock(ARGV[1])
local deadline, alive = int(now + tonumber(ARGV[2])), int(now + tonumber(ARGV[3]))
local gone, a = {}, 5
for _, key in ipairs({PREFETCH_LISTS, ROUTES}) do
  local n = tonumber(ARGV[a - 1])
  for i = a, a + n - 1 do redis.call('ZADD', key, alive, ARGV[i]) end
  a = a + n + 1
end
for i = a - 1, #ARGV, 2 do
  if lease_of(ARGV[i]) == ARGV[i + 1] then redis.call('ZADD', LEASES, deadline, ARGV[i])
  else gone[#gone + 1] = ARGV[i] end
end
return gone
