--- @include base
--- @flags allow-oom
-- Renews the leases of a worker's jobs and its registry entries (PREFETCH_LISTS): the heartbeat.
-- KEYS[1..]  per job: its hash
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the lease in ms
-- ARGV[3]    for how long a registry entry counts as alive in ms
-- ARGV[4]    the number of registry entries
-- ARGV[5..]  the entries; then per job: id, fencing token
-- Returns [1]  the ids whose lease this worker has lost
--         [2]  the ids of jobs to cancel
local now = clock(ARGV[1])
local deadline, alive = int(now + tonumber(ARGV[2])), int(now + tonumber(ARGV[3]))
local entries = tonumber(ARGV[4])
local gone, stops, a = {}, {}, 5 + entries
for k = 1, #KEYS do
  local id, token = ARGV[a], ARGV[a + 1]
  local has = read(KEYS[k], 'mw_token', 'status', 'mw_stop')
  if has.mw_token == token and has.status == 'started' then
    -- Also if the set has lost the entry: whatever ends a lease ends the token too.
    redis.call('ZADD', LEASES, deadline, id)
    if has.mw_stop then stops[#stops + 1] = id end
  else
    gone[#gone + 1] = id
  end
  a = a + 2
end
for i = 5, 4 + entries do redis.call('ZADD', PREFETCH_LISTS, alive, ARGV[i]) end
return {gone, stops}
