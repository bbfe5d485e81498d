--- @include base
--- @flags allow-oom
-- A listener that goes away hands back the ids that came to it meanwhile.
-- KEYS    per queue: the queue, this process' feed list for it
-- ARGV    now; per queue: the entry among the listeners
-- Returns the number of ids handed back, 1 if there may be more
local MOST = 1000 -- ids in one call; the listener stays until its list is empty
local moved = 0
for k = 1, #KEYS, 2 do
  while moved < MOST do
    local id = redis.pcall('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT')
    if not id or id.err then break end -- a queue that is no list holds up no other
    moved = moved + 1
  end
  if redis.call('EXISTS', KEYS[k + 1]) == 0 then redis.call('ZREM', FEEDS, ARGV[1 + (k + 1) / 2]) end
end
return {moved, moved >= MOST and 1 or 0}
