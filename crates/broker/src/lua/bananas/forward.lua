--- @include bananas
--- @flags allow-oom
-- Moves jobs of Bananas that wait on a list without a route to the lists of their routes, in the order in which they are
-- given, each while a worker of ours takes from there: Bananas' own may not.
-- KEYS    the list; per job: the list of its route
-- ARGV    now, how deep to look; per job: id, its route
-- Returns how many were moved
local now, depth, moved = clock(ARGV[1]), ARGV[2], 0
for k = 2, #KEYS do
  local id, alive = ARGV[2 * k - 1], tonumber(redis.call('ZSCORE', ROUTES, ARGV[2 * k]) or '') or 0
  -- What is no list leaves the job where it is.
  if alive > now and redis.call('LPOS', KEYS[1], id, 'RANK', -1, 'MAXLEN', depth)
    and type(redis.pcall('LPUSH', KEYS[k], id)) == 'number' then
    redis.call('LREM', KEYS[1], -1, id)
    moved = moved + 1
  end
end
return moved
