--- @include base
-- Nooble4: the worker of a message. A message taken from a list is in the worker's processing list; one of a stream is
-- pending in its group. No script reads the content of a message.

-- Returns true if the message is this worker's: with the same number of deliveries as the worker knows.
local function holds()
  if ARGV[2] == '' then return redis.call('LPOS', KEYS[2], ARGV[6]) and true end
  local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], ARGV[4], ARGV[4], 1, ARGV[3])
  return not given.err and given[1] and int(given[1][4]) == ARGV[5]
end

-- Returns the name of the message in its place: the message itself in a list, its id in a stream.
local function known_by() return ARGV[2] == '' and ARGV[6] or ARGV[4] end

-- Puts a message into a queue: at the front of a list, at the end of a stream.
local function put(queue, message)
  if ARGV[2] == '' then redis.call('RPUSH', queue, message)
  else redis.call('XADD', queue, '*', 'data', message) end
end
