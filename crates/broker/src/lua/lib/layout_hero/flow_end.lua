-- No job of Hero is part of a flow.
local function end_in_flow() return false end local function start_in_flow() end
