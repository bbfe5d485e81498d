-- Takes up to `want` jobs off the queue, each under a lease.
local function take(queue, leases, now, deadline, want, who)
  local taken = redis.call('RPOP', queue, want) or {}
  for n, id in ipairs(taken) do
    local job = 'floor:job:' .. id
    redis.call('HSET', job, 'state', 'running', 'begun', now, 'runner', who)
    redis.call('ZADD', leases, deadline, id)
    taken[n] = {id, redis.call('HGETALL', job)}
  end
  return taken
end
