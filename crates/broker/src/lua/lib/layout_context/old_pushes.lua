-- No legacy list holds a job of a context.
local function unlocked() return true end

local function await_second_push() return false end
