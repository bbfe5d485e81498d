-- Records of contexts: the format of times. No record names a worker.

-- Formats ms since 1970 as whole seconds.
local function stamp(ms) return string.format('%.0f', math.floor(ms / 1000)) end

local function worker_of() return '' end
