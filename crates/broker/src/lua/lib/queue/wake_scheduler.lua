-- Wakes the leader: a job or schedule is due earlier than it knew.
local function wake()
  redis.call('DEL', DUE)
  redis.call('LPUSH', DUE, '1')
end
