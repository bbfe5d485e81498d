-- Says that a worker is there under its name; or, with no time to live, that it is there no more.
-- KEYS    its presence key
-- ARGV    now, what to write, time to live in s, the text that makes it this process' own, what may be
--         written over ('' for nothing)
-- Returns '' or what another worker of that name wrote, which is left alone
local is = redis.call('GET', KEYS[1])
if is and not string.find(is, ARGV[4], 1, true) and is ~= ARGV[5] then return is end
if ARGV[3] == '0' then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', ACTORS, KEYS[1])
else
  local now = clock(ARGV[1])
  redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
  redis.call('ZREMRANGEBYSCORE', ACTORS, '-inf', whole(now))
  redis.call('ZADD', ACTORS, whole(now + 1000 * tonumber(ARGV[3])), KEYS[1])
end
return ''
