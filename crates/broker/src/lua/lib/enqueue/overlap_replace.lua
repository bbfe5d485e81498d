--- @include telemetry, enqueue/enqueue_fast
-- Overlap policy `replace` of schedules: the job of a slot replaces that of the slot before.

-- Cancels the last job; a running one is cancelled by its worker.
local function displace(id, has, queue, control, by, now, who)
  local reason = 'replaced by ' .. by
  if has.status ~= 'started' then
    return slow_path().cancel_waiting(id, JOB .. id, has, reason, has.mw_queue or queue, now, who)
  end
  if has.mw_stop then return end
  redis.call('HSET', JOB .. id, 'mw_stop', reason, 'mw_with', '1')
  -- If that key is no list, the worker learns it at its next renewal.
  pushed('LPUSH', control, id)
  event(id, 'stop', who, reason)
end

-- Returns the replaced job and its prerequisites, of which one may still run.
local function with_its_own(last, has)
  local after = {last}
  for id in string.gmatch(has.mw_waiting or '', '"([^"]+)"') do
    if redis.call('EXISTS', JOB .. id) == 1 then after[#after + 1] = id end
  end
  return after
end
