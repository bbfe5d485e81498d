-- The end of a job of a message: the coordinator looks at the message before all others.
local function mark_message(key)
  local message = redis.pcall('HGET', key, 'mw_message')
  -- XX: an element that is not open is not added. A plain client may write the field.
  if type(message) == 'string' then redis.pcall('ZADD', OPEN, 'XX', '0', message) end
end
