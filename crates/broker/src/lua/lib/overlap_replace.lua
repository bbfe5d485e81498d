--- @include telemetry, enqueue_fast
-- Schedules with the overlap policy replace: the job of the next slot takes the place of the last one.

-- Stops the last job; one that runs is stopped by its worker.
local function displace(id, has, queue, control, by, now, who)
  local reason = 'replaced by ' .. by
  if has.status ~= 'started' then
    return slow_path().cancel_waiting(id, JOB .. id, has, reason, has.mw_queue or queue, now, who)
  end
  if has.mw_stop then return end
  redis.call('HSET', JOB .. id, 'mw_stop', reason, 'mw_with', '1')
  -- Where that key is no list, the next renewal tells it.
  pushed('LPUSH', control, id)
  event(id, 'stop', who, reason)
end

-- A job that has been replaced, and those that it waited for: one of them may run still.
local function with_its_own(last, has)
  local after = {last}
  for id in string.gmatch(has.mw_waiting or '', '"([^"]+)"') do
    if redis.call('EXISTS', JOB .. id) == 1 then after[#after + 1] = id end
  end
  return after
end
