-- Elements of lists. The id of a job of Hero is any text, so each may name one.
local function names_job() return true end
