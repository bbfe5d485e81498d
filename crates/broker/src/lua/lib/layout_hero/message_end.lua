-- No job of Hero is part of a message.
local function mark_message() end
