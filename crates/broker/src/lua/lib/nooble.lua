--- @include base
-- Nooble4: whose a message is. What a worker took from a list stands in a list of its own; of a
-- stream, among what its group was given and has not acknowledged. What is in a message, no script reads.

-- Whether the message is this worker's: it was given to it as often as it says, and to nobody since.
local function holds()
  if ARGV[2] == '' then return redis.call('LPOS', KEYS[2], ARGV[6]) and true end
  local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], ARGV[4], ARGV[4], 1, ARGV[3])
  return not given.err and given[1] and int(given[1][4]) == ARGV[5]
end

-- By what it is known where it stands: the message by itself in a list, by its id in a stream.
local function known_by() return ARGV[2] == '' and ARGV[6] or ARGV[4] end

-- Puts a message into a queue: as the next of a list, as the last of a stream.
local function put(queue, message)
  if ARGV[2] == '' then redis.call('RPUSH', queue, message)
  else redis.call('XADD', queue, '*', 'data', message) end
end
