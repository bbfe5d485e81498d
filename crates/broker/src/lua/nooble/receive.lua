--- @include base
--- @flags allow-oom
-- Takes messages of a list, the oldest first, for as long as there are any: each is this worker's from then on.
-- KEYS    1: the queue
--         2: what the worker has in hand
-- ARGV    1: most
--         2: how long what is in hand waits for the next worker, if this one is killed, in ms
-- Returns the messages
local taken = {}
for _ = 1, tonumber(ARGV[1]) do
  local message = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')
  if not message then break end
  taken[#taken + 1] = message
end
if taken[1] then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
return taken
