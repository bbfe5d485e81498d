-- No type of a context migrates. Returns no list, and the ms until the next check of a job.
local function old_list() return nil, WATCH_AFTER end

local function dual_write() end
