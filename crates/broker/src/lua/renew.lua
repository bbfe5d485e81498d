--- @include base
--- @flags allow-oom
-- Keeps a worker alive: its place among the listeners, and the leases of what it runs.
-- KEYS    per job: its hash
-- ARGV    now, lease in ms, how long a listener counts as alive in ms, number of listener entries,
--         the entries; then per job: id, token
-- Returns the ids that are no longer this worker's, and those that somebody wants stopped
local now = clock(ARGV[1])
local deadline, alive = int(now + tonumber(ARGV[2])), int(now + tonumber(ARGV[3]))
local entries = tonumber(ARGV[4])
local gone, stops, a = {}, {}, 5 + entries
for k = 1, #KEYS do
  local id, token = ARGV[a], ARGV[a + 1]
  local has = read(KEYS[k], 'mw_token', 'status', 'mw_stop')
  if has.mw_token == token and has.status == 'started' and redis.call('ZSCORE', LEASES, id) then
    redis.call('ZADD', LEASES, deadline, id)
    if has.mw_stop then stops[#stops + 1] = id end
  else
    gone[#gone + 1] = id
  end
  a = a + 2
end
for i = 5, 4 + entries do redis.call('ZADD', FEEDS, alive, ARGV[i]) end
return {gone, stops}
