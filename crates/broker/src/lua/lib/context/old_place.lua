--- @include legacy_lookup
-- No job of a context stands on an old list.
local function old_place() end
