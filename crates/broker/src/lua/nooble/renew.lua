--- @include base
--- @flags allow-oom
-- Renews a worker's registry entry and its messages: the heartbeat.
-- KEYS[1]    the queue
-- KEYS[2]    the registry of the queue's workers
-- KEYS[3]    the worker's processing list (of a stream, the stream)
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the group ('' for a list)
-- ARGV[3]    the worker
-- ARGV[4]    for how long the worker counts as alive in ms
-- ARGV[5]    for how long the registry and the processing list are kept in ms
-- ARGV[6..]  per message of a stream: id, how often it was delivered
-- Returns the ids that are no longer this worker's
local gone = {}
redis.call('ZADD', KEYS[2], int(clock(ARGV[1]) + tonumber(ARGV[4])), ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
if ARGV[2] == '' then redis.call('PEXPIRE', KEYS[3], ARGV[5]) end -- a stream is shared: it gets no expiry
for i = 6, #ARGV, 2 do
  local id = ARGV[i]
  local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], id, id, 1, ARGV[3])
  if not given.err and given[1] and int(given[1][4]) == ARGV[i + 1] then
    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, id, 'JUSTID')
  else
    gone[#gone + 1] = id
  end
end
return gone
