--- @include base, element
-- Prerequisites of a context's jobs: jobs, messages and flows, by their keys; gates, by their names.

-- Returns the status of a prerequisite as that of a job; nil if it is missing, and true if its key has
-- another type: it may come back. A gate always exists.
local function status_of(id)
  if not names_object(id) then return redis.call('SISMEMBER', GATES, id) == 1 and 'finished' or WAITING end
  local has, other = read(id, 'status')
  return has.status == 'processed' and 'finished' or has.status, other
end

-- Does nothing: records of a context do not list their dependents.
local function note_dependent() end
