-- Hero has no flows.
local function end_in_flow() return false end local function start_in_flow() end
