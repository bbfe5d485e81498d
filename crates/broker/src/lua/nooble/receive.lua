--- @include base
--- @flags allow-oom
-- Moves messages of a list to the worker's processing list, the oldest first.
-- KEYS[1]  the queue
-- KEYS[2]  the worker's processing list
-- ARGV[1]  most messages
-- ARGV[2]  for how long the processing list is kept in ms if the worker dies
-- Returns the messages
local taken = {}
for _ = 1, tonumber(ARGV[1]) do
  local message = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')
  if not message then break end
  taken[#taken + 1] = message
end
if taken[1] then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return taken
