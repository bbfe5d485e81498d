-- Forgets a worker that has nothing in hand and takes no more.
-- KEYS    the queue, what the worker has in hand, who takes from the list
-- ARGV    now, group ('' for a list), worker
-- Returns 1, or 0 if it has something in hand: that is taken over when its time is up
if ARGV[2] == '' then
  if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
  return redis.call('ZREM', KEYS[3], ARGV[3])
end
local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], '-', '+', 1, ARGV[3])
if given.err or given[1] then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[2], ARGV[3])
return 1
