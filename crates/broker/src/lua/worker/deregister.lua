--- @include base
--- @flags allow-oom
-- Empties the prefetch lists of a worker that stops: their ids return to their queues.
-- KEYS[1..]  per queue: the queue, the worker's prefetch list of it
-- ARGV[1]    the time in ms; not used
-- ARGV[2..]  per queue: the prefetch list's member of the registry (PREFETCH_LISTS)
-- Returns [1]  the number of ids returned
--         [2]  1 if more may be left
local MOST = 1000 -- ids in one call; the registry entry stays until its list is empty
local moved = 0
for k = 1, #KEYS, 2 do
  while moved < MOST do
    local id = try('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT')
    if not id or id.err then break end -- a queue that is no list does not block others
    moved = moved + 1
  end
  if redis.call('EXISTS', KEYS[k + 1]) == 0 then redis.call('ZREM', PREFETCH_LISTS, ARGV[1 + (k + 1) / 2]) end
end
return {moved, moved >= MOST and 1 or 0}
