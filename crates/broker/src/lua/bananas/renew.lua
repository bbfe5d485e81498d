--- @include bananas
--- @flags allow-oom
-- Keeps a worker for Bananas' jobs alive: its leases, its place among the listeners, and its routes.
-- KEYS
-- ARGV    now, lease in ms, how long a listener counts as alive in ms, number of listener entries, these, number of
--         routes, these; then per job: under what it is held, token
-- Returns under what those were held that are no longer this worker's
local now = clock(ARGV[1])
local deadline, alive = int(now + tonumber(ARGV[2])), int(now + tonumber(ARGV[3]))
local gone, a = {}, 5
for _, key in ipairs({FEEDS, ROUTES}) do
  local n = tonumber(ARGV[a - 1])
  for i = a, a + n - 1 do redis.call('ZADD', key, alive, ARGV[i]) end
  a = a + n + 1
end
for i = a - 1, #ARGV, 2 do
  if holder(ARGV[i]) == ARGV[i + 1] then redis.call('ZADD', LEASES, deadline, ARGV[i])
  else gone[#gone + 1] = ARGV[i] end
end
return gone
