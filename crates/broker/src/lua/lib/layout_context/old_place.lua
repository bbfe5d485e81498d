--- @include orphans/scan
-- No legacy list holds a job of a context.
local function old_place() end
