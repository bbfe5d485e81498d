--- @include protocols/bananas, claim/prefetch_lists
--- @flags allow-oom
-- Reclaims jobs of Bananas whose lease has ended: puts them at the front of their lists and counts the losses. Ids in
-- the prefetch lists of dead workers return too.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most leases in one call
-- ARGV[3]  most prefetch lists in one call
-- ARGV[4]  ms by which a blocking read may outlast its registry entry
-- ARGV[5]  for how long a loss is remembered in ms
-- Returns [1]  the ids requeued
--         [2]  the number of ids returned from prefetch lists
local now, requeued = clock(ARGV[1]), {}
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(now), 'LIMIT', 0, ARGV[2])) do
  local _, list, id = lease_of(hold)
  -- A key that is no list does not block other jobs; its job is tried again.
  local back = list and try('RPUSH', list, id)
  if type(back) == 'number' or not list then
    end_lease(hold, list, id)
    if list then
      count(list, 'lost')
      redis.call('INCR', LOST .. id)
      redis.call('PEXPIRE', LOST .. id, ARGV[5])
      requeued[#requeued + 1] = id
    end
  end
end
redis.call('ZREMRANGEBYSCORE', ROUTES, '-inf', int(now))
return {requeued, unfeed(now, ARGV[3], tonumber(ARGV[4]))}
