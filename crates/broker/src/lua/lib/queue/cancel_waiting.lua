--- @include complete/ending, queue/remove_from_lists
-- Cancels a job that no worker runs. `later` and `kind` are those of fail_job.
local function cancel_waiting(id, key, has, reason, queue, now, by, later, kind)
  try('ZREM', DELAYED, id)
  unqueue(queue, id)
  unlock(has.mw_lock, id)
  if unlist(id, has) then
    redis.call('HSET', key, 'mw_legacy', '1') -- so its client waits on the legacy reply list
    has.mw_legacy = '1'
  end
  has.mw_queue = has.mw_queue or queue
  has.mw_stop = has.mw_stop or reason
  fail_job(id, key, has, reason, now, nil, by, later, kind)
end
