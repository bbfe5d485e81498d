--- @include complete/ending, queue/cancel_waiting, claim/start_limit
-- Jobs whose start timeout is over, for a task of maintenance.

-- Ends up to `most` of them. Returns the number of jobs visited, 0 if the key is of another kind. A job that has begun or
-- ended is only removed.
local function expire_starts(now, most)
  local ids = try('ZRANGEBYSCORE', STARTS, '-inf', int(now), 'LIMIT', 0, most)
  for _, id in ipairs(ids) do
    local key = JOB .. id
    local has, other = record(key, 'mw_start_by', 'mw_lost', 'mw_lock', 'script_type', 'worker_id', 'actor_id')
    local why = is_dispatched(has.status) and too_late(has, now)
    if other then put_off(STARTS, id, now) else redis.call('ZREM', STARTS, id) end
    if why then cancel_waiting(id, key, has, why, has.mw_queue or '', now, '', true, 'timeout') end
  end
  return #ids
end
