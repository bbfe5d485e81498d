--- @include base
-- Old lists on which a job may stand, and requests to stop it, where workers of old look.

-- Off the old list where it stands once. Old workers look at no status, so however long the list is, the id
-- has to go.
local function unlock(list, id)
  if list then redis.pcall('LREM', list, -1, id) end
end

-- Off the old lists that its client may have pushed it to, of a job that none of our scripts has had to do with
-- yet: where it waits, only its client knows. Whether it stood on one.
local function unlist(id, has)
  if has.mw_reply or has.mw_queue then return false end
  local worker_id, of_type = worker_of(has), OLD_TYPE .. string.lower(has.script_type or '')
  local stood = false
  for _, list in ipairs({of_type, JOB .. worker_id, OLD_WORK .. worker_id}) do
    local removed = redis.pcall('LREM', list, 0, id)
    if type(removed) == 'number' and removed > 0 then stood = true end
  end
  return stood
end

-- The list on which a worker without leases is told to stop it, if the job is for one.
local function old_stop_queue(has) return worker_of(has) ~= '' and OLD_STOP .. worker_of(has) or nil end
