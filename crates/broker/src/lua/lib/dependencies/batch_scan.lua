--- @include complete/ending, queue/cancel_waiting, queue/cancel_requests
-- Scans of the open members of a batch.

-- Cancels a member of a cancelled batch: at once, or through its worker.
local function cancel_member(id, key, is, why, now, by)
  if is.status ~= 'started' then return cancel_waiting(id, key, is, why, is.mw_queue or '', now, by) end
  if is.mw_stop then return end
  redis.call('HSET', key, 'mw_stop', why, 'mw_with', '1')
  ask_to_stop(id, is, CONTROL .. (is.script_type or ''), {})
  event(id, 'stop', by, why)
end

-- Goes on with the scan: counts ended members that were missed, and cancels the others of a cancelled batch. Returns
-- the number of members visited, and true after the last page.
local function scan_members(batch, has, now, most, by)
  local page = redis.call('SSCAN', MEMBERS .. batch, has.scan or '0', 'COUNT', most)
  for _, id in ipairs(page[2]) do
    local key = JOB .. id
    local is, other = record(key, 'mw_lock', 'mw_stop', 'mw_token', 'script_type', 'worker_id', 'actor_id')
    if final(is.status) or not (is.status or other) then leave(id, batch, is.status == 'finished', now)
    elseif has.cancelled and not other then cancel_member(id, key, is, has.cancelled, now, by) end
  end
  redis.call('HSET', BATCHES .. batch, 'scan', page[1])
  visit_batch(batch, now)
  return #page[2], page[1] == '0'
end
