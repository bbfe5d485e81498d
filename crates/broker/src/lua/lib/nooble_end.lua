-- Nooble4: how a message ends.

-- A message is in hand no more, and in its queue no more: one of a stream by its id; one of a list (group '') as it stands
-- in the list of what its worker has in hand. False if it was that already.
local function let_go(hand, group, which)
  if group == '' then return redis.call('LREM', hand, 1, which) == 1 end
  local was = redis.pcall('XACK', hand, group, which) == 1
  if was then redis.call('XDEL', hand, which) end
  return was
end

-- Puts an answer where it is waited for, for so many ms ('0' to end when the list does). What is no list there is left
-- alone.
local function answer(list, text, ms)
  if text == '' then return true end
  if type(redis.pcall('LPUSH', list, text)) ~= 'number' then return false end
  if ms ~= '0' then redis.call('PEXPIRE', list, ms) end
  return true
end
