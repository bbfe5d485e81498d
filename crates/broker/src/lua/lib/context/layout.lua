-- Records of contexts: how a time is written, and that no job is for one worker by its record.

-- Milliseconds since 1970 as whole seconds.
local function stamp(ms) return string.format('%.0f', math.floor(ms / 1000)) end

local function worker_of() return '' end
