-- Jobs that none of our scripts has had to do with yet: where they wait, only their clients know.

-- Takes the id of such a job off the old lists that its client may have pushed it to, since old workers look
-- at no status and would run it. Whether it stood on one.
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
