--- @include base
--- @flags allow-oom
-- Keeps the answer to a step of a cycle, and forgets the list that it came to. The first one counts.
-- KEYS    1: the steps of the cycle
--         2: the list
-- ARGV    1: step
--         2: answer
--         3: for how long steps are kept in ms
--         4: the most bytes
-- Returns 'kept' and the answer that is kept; 'full' if there is no room for it, or 'gone' if the step is forgotten:
--         then it stays where it came to
local has = redis.call('HMGET', KEYS[1], 'message ' .. ARGV[1], 'answer ' .. ARGV[1], 'bytes')
if not has[1] then return {'gone', ''} end
if not has[2] and tonumber(has[3]) + #ARGV[2] > tonumber(ARGV[4]) then return {'full', ''} end
if not has[2] then
  redis.call('HSET', KEYS[1], 'answer ' .. ARGV[1], ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'bytes', #ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
redis.call('DEL', KEYS[2])
return {'kept', has[2] or ARGV[2]}
