--- @include base
-- Names of lists in records, lists and sets. Others write these too, so a name counts only if it is one of this namespace.

-- Returns true for a queue, or a legacy list, of this namespace.
local function own_queue(name)
  for _, prefix in ipairs({QUEUES, OLD_WORK, JOB}) do
    if string.sub(name, 1, #prefix) == prefix then return true end
  end
  return false
end
