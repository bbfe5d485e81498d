-- Stopping a job that no worker runs.
local function stop(id, key, has, reason, queue, now, by)
  redis.pcall('ZREM', DELAYED, id)
  unqueue(queue, id)
  if has.mw_lock then unqueue(has.mw_lock, id) end
  fault(id, key, has, reason, now, nil, by)
end
