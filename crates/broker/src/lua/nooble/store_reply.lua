--- @include base
--- @flags allow-oom
-- Stores the reply to a step of a cycle in the cycle, and deletes the list that it came to. The first reply counts.
-- KEYS[1]  the steps of the cycle
-- KEYS[2]  the list
-- ARGV[1]  the step
-- ARGV[2]  the reply
-- ARGV[3]  for how long the steps are kept in ms
-- ARGV[4]  most bytes
-- Returns [1]  'stored'; 'full' if there is no room; 'gone' if the step is deleted: the list stays in both cases
--         [2]  the stored reply ('' if none was stored)
local has = redis.call('HMGET', KEYS[1], 'message ' .. ARGV[1], 'answer ' .. ARGV[1], 'bytes')
if not has[1] then return {'gone', ''} end
if not has[2] and tonumber(has[3]) + #ARGV[2] > tonumber(ARGV[4]) then return {'full', ''} end
if not has[2] then
  redis.call('HSET', KEYS[1], 'answer ' .. ARGV[1], ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'bytes', #ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
redis.call('DEL', KEYS[2])
return {'stored', has[2] or ARGV[2]}
