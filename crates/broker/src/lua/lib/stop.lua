-- Stopping a job that no worker runs.
local function stop(id, key, has, reason, queue, now, by)
  redis.pcall('ZREM', DELAYED, id)
  unqueue(queue, id)
  unlock(has.mw_lock, id)
  fault(id, key, has, reason, now, nil, by)
end
