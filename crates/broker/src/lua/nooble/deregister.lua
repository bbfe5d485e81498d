--- @include base
--- @flags allow-oom
-- Removes the registry entry of a worker that stops, if it has no message.
-- KEYS[1]  the queue
-- KEYS[2]  the worker's processing list
-- KEYS[3]  the registry of the queue's workers
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the group ('' for a list)
-- ARGV[3]  the worker
-- ARGV[4]  for how long the registry is kept in ms
-- Returns 1, or 0 if the worker has messages: other workers reclaim them at once
local function has_something()
  if ARGV[2] == '' then return redis.call('EXISTS', KEYS[2]) == 1 end
  local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], '-', '+', 1, ARGV[3])
  return not given.err and given[1]
end

if has_something() then
  redis.call('ZADD', KEYS[3], int(clock(ARGV[1])), ARGV[3])
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
  return 0
end
redis.call('ZREM', KEYS[3], ARGV[3])
if ARGV[2] ~= '' then redis.pcall('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[2], ARGV[3]) end
return 1
