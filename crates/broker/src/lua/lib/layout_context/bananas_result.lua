-- Nothing: no job of a context comes from Bananas.
local function tell_bananas() end
