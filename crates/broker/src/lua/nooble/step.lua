--- @include base
-- Takes a step of a cycle: its action is sent, and that it was is noted with it. Of a step that was taken before it is
-- said what came of it; one that is not answered may be asked again, in the same words.
-- KEYS    1: the steps of the cycle
--         2: the queue
-- ARGV    1: now
--         2: 'stream' ('' for a list)
--         3: step
--         4: message
--         5: after how long without an answer it is asked again in ms (-1 for never)
--         6: for how long steps are kept in ms
--         7: the most steps
--         8: the most bytes
-- Returns 'asked', 'again', 'waits', 'answered' or 'full'; the message that was sent, the ms since then, the answer
local now = clock(ARGV[1])
local function send(message)
  if ARGV[2] == '' then redis.call('LPUSH', KEYS[2], message)
  else redis.call('XADD', KEYS[2], '*', 'data', message) end
  redis.call('HSET', KEYS[1], 'asked ' .. ARGV[3], int(now))
  redis.call('PEXPIRE', KEYS[1], ARGV[6])
end

local has = redis.call('HMGET', KEYS[1], 'message ' .. ARGV[3], 'asked ' .. ARGV[3], 'answer ' .. ARGV[3], 'steps',
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
return {'asked', ARGV[4], 0, ''}
