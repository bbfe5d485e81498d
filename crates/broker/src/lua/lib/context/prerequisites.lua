--- @include base, element
-- What a job of a context may wait for: the end of a job, a message or a flow, by its key; or a gate, by its name.

-- The status of a prerequisite in the words of jobs; false or nil if it is not there. A gate is there at all times.
local function status_of(id)
  if not names_object(id) then return redis.call('SISMEMBER', GATES, id) == 1 and 'finished' or WAITING end
  local status = exists(id) and redis.call('HGET', id, 'status')
  return status == 'processed' and 'finished' or status
end

-- Who waits for a record, it does not say.
local function note_dependent() end
