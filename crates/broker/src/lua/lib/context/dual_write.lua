-- No type of a context migrates. Gives after how many ms one looks at a job again.
local function old_list() return nil, WATCH_AFTER end

local function dual_write() end
