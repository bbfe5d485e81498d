-- Nooble4: the end of a message.

-- Removes a message: from its stream by id, or from the worker's processing list (group ''). Returns false if it was
-- removed before.
local function end_lease(hand, group, which)
  if group == '' then return redis.call('LREM', hand, 1, which) == 1 end
  local was = redis.pcall('XACK', hand, group, which) == 1
  if was then redis.call('XDEL', hand, which) end
  return was
end

-- Pushes a reply to its list, which expires after that many ms ('0': its expiry stays). Returns false if the key is no
-- list.
local function answer(list, text, ms)
  if text == '' then return true end
  if type(redis.pcall('LPUSH', list, text)) ~= 'number' then return false end
  if ms ~= '0' then redis.call('PEXPIRE', list, ms) end
  return true
end
