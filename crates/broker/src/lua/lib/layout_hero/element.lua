-- Elements of lists. The id of a Hero job is any text, so each element may be one.
local function names_job() return true end
