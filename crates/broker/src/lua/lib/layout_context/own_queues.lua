--- @include base
-- Names of lists in records, lists and sets. Others write these too, so a name counts only if it is one of this context.

-- Returns true for a queue of this context.
local function own_queue(name) return string.sub(name, 1, #WORK) == WORK end
