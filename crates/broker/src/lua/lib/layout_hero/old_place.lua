--- @include orphans/scan
-- Returns the legacy list that holds the id, if one does: its lock, that of its type's migration, or another one that
-- its client may have chosen.
local function old_place(id, has)
  local worker_id, script_type = worker_of(has), type_of(has)
  local lists = {OLD_TYPE .. string.lower(script_type), JOB .. worker_id, OLD_WORK .. worker_id}
  lists[#lists + 1] = has.mw_lock or nil
  lists[#lists + 1] = old_list(script_type, worker_id) or nil
  local seen = {}
  for _, list in ipairs(lists) do
    if not seen[list] and holds(list, id) then return list end
    seen[list] = true
  end
end
