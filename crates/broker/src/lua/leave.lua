-- A listener that goes away hands back the ids that came to it meanwhile.
-- KEYS    listeners; then per queue: the queue, this process' feed list for it
-- ARGV    per queue: the entry among the listeners
-- Returns the number of ids handed back
local moved = 0
for k = 2, #KEYS, 2 do
  while redis.call('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') do moved = moved + 1 end
  redis.call('ZREM', KEYS[1], ARGV[k / 2])
end
return moved
