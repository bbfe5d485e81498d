--- @include base
-- Takes a step of a cycle: sends its action and notes it, in one step. A step that was taken before keeps its message
-- and its reply; one without a reply may be sent again.
-- KEYS[1]  the steps of the cycle
-- KEYS[2]  the queue
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  'stream' ('' for a list)
-- ARGV[3]  the step
-- ARGV[4]  the message
-- ARGV[5]  ms without a reply after which it is sent again (-1 for never)
-- ARGV[6]  for how long the steps are kept in ms
-- ARGV[7]  most steps
-- ARGV[8]  most bytes
-- Returns [1]  'sent', 'again' (sent again), 'waits' (no reply yet), 'answered' or 'full'
--         [2]  the message that was sent
--         [3]  the ms since it was sent
--         [4]  the reply
local now = clock(ARGV[1])
local function send(message)
  if ARGV[2] == '' then redis.call('LPUSH', KEYS[2], message)
  else redis.call('XADD', KEYS[2], '*', 'data', message) end
  redis.call('HSET', KEYS[1], 'sent ' .. ARGV[3], int(now))
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end

local has = redis.call('HMGET', KEYS[1], 'message ' .. ARGV[3], 'sent ' .. ARGV[3], 'answer ' .. ARGV[3], 'steps',
  'bytes')
if has[3] then return {'answered', has[1], 0, has[3]} end
if has[1] then
  local since, after = math.max(0, now - tonumber(has[2])), tonumber(ARGV[5])
  if after < 0 or since < after then return {'waits', has[1], since, ''} end
  send(has[1])
  return {'again', has[1], 0, ''}
end
if tonumber(has[4] or 0) >= tonumber(ARGV[7]) or tonumber(has[5] or 0) + #ARGV[4] > tonumber(ARGV[8]) then
  return {'full', '', 0, ''}
end
redis.call('HSET', KEYS[1], 'message ' .. ARGV[3], ARGV[4])
redis.call('HINCRBY', KEYS[1], 'steps', 1)
redis.call('HINCRBY', KEYS[1], 'bytes', #ARGV[4])
send(ARGV[4])
return {'sent', ARGV[4], 0, ''}
