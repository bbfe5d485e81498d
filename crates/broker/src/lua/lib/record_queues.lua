--- @include own_queues
-- Lists that the record of a job names.

-- Returns the queue of a job's type, '' if its record has no type.
local function queue_of_type(key)
  local script_type = try('HGET', key, 'script_type')
  return type(script_type) == 'string' and script_type ~= '' and WORK .. string.lower(script_type) or ''
end

-- Removes names of other lists from the fields of a job. Its queue is that of its type then. `other` of `read` passes on.
local function only_own(key, has, other)
  if has.mw_queue and not own_queue(has.mw_queue) then has.mw_queue = queue_of_type(key) end
  if has.mw_lock and not own_queue(has.mw_lock) then has.mw_lock = nil end
  return has, other
end
