--- @include base
-- Legacy lists that may hold a job, and the legacy lists for requests to cancel it.

-- Removes the id from its legacy list, however long that is: legacy workers ignore the status.
local function unlock(list, id)
  if list then try('LREM', list, -1, id) end
end

-- Removes a foreign client's job from the legacy lists that its client may have chosen, if no script has touched the
-- job yet. Returns true if a list held it.
local function unlist(id, has)
  if has.mw_reply or has.mw_queue then return false end
  local worker_id, of_type = worker_of(has), OLD_TYPE .. string.lower(has.script_type or '')
  local stood = false
  for _, list in ipairs({of_type, JOB .. worker_id, OLD_WORK .. worker_id}) do
    local removed = try('LREM', list, 0, id)
    if type(removed) == 'number' and removed > 0 then stood = true end
  end
  return stood
end

-- Returns the stop queue of the worker without leases that the job is for, if it is for one.
local function old_stop_queue(has) return worker_of(has) ~= '' and OLD_STOP .. worker_of(has) or nil end
