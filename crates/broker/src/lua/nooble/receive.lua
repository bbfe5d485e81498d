-- Takes messages of a list, the oldest first, for as long as there are any: each is this worker's from then on.
-- KEYS    the queue, what the worker has in hand
-- ARGV    most
-- Returns the messages
local taken = {}
for _ = 1, tonumber(ARGV[1]) do
  local message = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')
  if not message then break end
  taken[#taken + 1] = message
end
return taken
