--- @include bananas, prefetch_lists
--- @flags allow-oom
-- Takes back what workers of ours held that went away: a job whose lease has ended goes first into the list that it
-- came from, and the loss is counted. Ids in the feed lists of listeners that are gone go back too.
-- KEYS
-- ARGV    1: now
--         2: most leases per call
--         3: most listeners per call
--         4: how long a listener's last wait may outlast it in ms
--         5: how long a loss is remembered in ms
-- Returns the ids that wait again, the number of ids taken out of feed lists
local now, requeued = clock(ARGV[1]), {}
for _, hold in ipairs(redis.call('ZRANGEBYSCORE', LEASES, '-inf', int(now), 'LIMIT', 0, ARGV[2])) do
  local _, list, id = holder(hold)
  -- What is no list any more holds up no other job: it is tried again.
  local back = list and redis.pcall('RPUSH', list, id)
  if type(back) == 'number' or not list then
    let_go(hold, list, id)
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
