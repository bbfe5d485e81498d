--- @include protocols/nooble
--- @flags allow-oom
-- Moves delayed actions whose pause after a failed run is over to their queue.
-- KEYS[1]  the queue
-- KEYS[2]  the set of delayed actions
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the group ('' for a list)
-- ARGV[3]  most actions
-- Returns [1]  the number of actions moved
--         [2]  in how many ms the next one is due, -1 for none
local now = clock(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', int(now), 'LIMIT', 0, ARGV[3])
for _, member in ipairs(due) do
  put(KEYS[1], string.sub(member, string.find(member, ' ', 1, true) + 1))
  redis.call('ZREM', KEYS[2], member)
end
local next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
return {#due, next[2] and math.max(0, tonumber(next[2]) - now) or -1}
