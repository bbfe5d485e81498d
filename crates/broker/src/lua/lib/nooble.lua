-- Nooble4: whose a message is, and how it ends. What a worker took from a list stands in a list of its own; of a
-- stream, among what its group was given and has not acknowledged. What is in a message, no script reads.

-- Whether the message is this worker's: it was given to it as often as it says, and to nobody since.
local function holds()
  if ARGV[2] == '' then return redis.call('LPOS', KEYS[2], ARGV[6]) and true end
  local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], ARGV[4], ARGV[4], 1, ARGV[3])
  return not given.err and given[1] and whole(given[1][4]) == ARGV[5]
end

-- It is in hand no more, and in its queue no more. False if it was that already.
local function let_go()
  if ARGV[2] == '' then return redis.call('LREM', KEYS[2], 1, ARGV[6]) == 1 end
  local was = redis.pcall('XACK', KEYS[1], ARGV[2], ARGV[4]) == 1
  if was then redis.call('XDEL', KEYS[1], ARGV[4]) end
  return was
end

-- Puts a message into a queue: as the next of a list, as the last of a stream.
local function put(queue, message)
  if ARGV[2] == '' then redis.call('RPUSH', queue, message)
  else redis.call('XADD', queue, '*', 'data', message) end
end

-- Puts an answer where it is waited for, for so many ms ('0' to end when the list does). What is no list there is left
-- alone.
local function answer(list, text, ms)
  if text == '' then return true end
  if type(redis.pcall('LPUSH', list, text)) ~= 'number' then return false end
  if ms ~= '0' then redis.call('PEXPIRE', list, ms) end
  return true
end
