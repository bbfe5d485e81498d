-- Ends a job that is under a lease. Whether it was.
local function finish(leases, id, result, now)
  if redis.call('ZREM', leases, id) == 0 then return false end
  redis.call('HSET', 'floor:job:' .. id, 'state', 'done', 'ended', now, 'result', result)
  return true
end
