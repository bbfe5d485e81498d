--- @include base
--- @flags allow-oom
-- Forgets a worker that has nothing in hand and takes no more.
-- KEYS    1: the queue
--         2: what the worker has in hand
--         3: who takes from the queue
-- ARGV    1: now
--         2: group ('' for a list)
--         3: worker
--         4: how long what it has in hand waits for the next worker in ms
-- Returns 1, or 0 if it has something in hand: that is taken over at once
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
