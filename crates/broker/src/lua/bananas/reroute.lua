--- @include protocols/bananas
--- @flags allow-oom
-- Moves jobs of Bananas from a list without a route to the lists of their routes, in the given order, each while a
-- worker of this system takes from that route: Bananas' own workers may not.
-- KEYS[1]    the list
-- KEYS[2..]  per job: the list of its route
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    how many entries of the list are searched
-- ARGV[3..]  per job: id, route
-- Returns the number of jobs moved
local now, depth, moved = clock(ARGV[1]), ARGV[2], 0
for k = 2, #KEYS do
  local id, alive = ARGV[2 * k - 1], tonumber(redis.call('ZSCORE', ROUTES, ARGV[2 * k]) or '') or 0
  -- If the key of the route is no list, the job stays in its list.
  if alive > now and redis.call('LPOS', KEYS[1], id, 'RANK', -1, 'MAXLEN', depth)
    and type(try('LPUSH', KEYS[k], id)) == 'number' then
    redis.call('LREM', KEYS[1], -1, id)
    moved = moved + 1
  end
end
return moved
