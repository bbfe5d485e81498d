-- No legacy list holds a job of a context or a request to cancel it.
local function unlock() end

local function unlist() return false end

local function old_stop_queue() end
