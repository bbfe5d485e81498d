-- Nooble4: how a message ends.

-- It is in hand no more, and in its queue no more. False if it was that already.
local function let_go()
  if ARGV[2] == '' then return redis.call('LREM', KEYS[2], 1, ARGV[6]) == 1 end
  local was = redis.pcall('XACK', KEYS[1], ARGV[2], ARGV[4]) == 1
  if was then redis.call('XDEL', KEYS[1], ARGV[4]) end
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
