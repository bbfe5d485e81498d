--- @include complete/finalize
-- Ids in lists and sets whose names belong to others.

-- Puts a job that waits, and that a list or set under a wrong name held, into the queue of its record.
local function send_home(id, now)
  local key = JOB .. id
  local has = record(key)
  if not is_dispatched(has.status) then return end
  deliver('RPUSH', id, key, has, has.mw_queue or queue_of_type(key), now, true)
end
