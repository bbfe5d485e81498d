--- @include nooble
--- @flags allow-oom
-- Puts actions back into their queue whose pause after a failed run is over.
-- KEYS    1: the queue
--         2: what waits
-- ARGV    1: now
--         2: group ('' for a list)
--         3: most
-- Returns how many, and the ms until the next one is due (-1 if none waits)
local now = clock(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', int(now), 'LIMIT', 0, ARGV[3])
for _, member in ipairs(due) do
  put(KEYS[1], string.sub(member, string.find(member, ' ', 1, true) + 1))
  redis.call('ZREM', KEYS[2], member)
end
local next = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
return {#due, next[2] and math.max(0, tonumber(next[2]) - now) or -1}
