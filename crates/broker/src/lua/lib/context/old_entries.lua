-- No job of a context stands on an old list, and no worker of old is told to stop it.
local function unlock() end

local function unlist() return false end

local function old_stop_queue() end
