--- @include base
--- @flags allow-oom
-- Registers a worker under its name, or removes the registration if the time to live is 0.
-- KEYS[1]  the registration
-- KEYS[2]  of a runner: a hash of the last signs of life of runners, in ms by number
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the value to write
-- ARGV[3]  the time to live in s
-- ARGV[4]  the text by which a value is known as this process' own
-- ARGV[5]  the value that may be replaced ('' for none)
-- ARGV[6]  the number of the runner ('' for none)
-- Returns '', or the value of another worker of that name, which stays
local MOST = 1000 -- entries of others that are removed in one call
local is = redis.call('GET', KEYS[1])
if is and not string.find(is, ARGV[4], 1, true) and is ~= ARGV[5] then return is end
if ARGV[3] == '0' then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', ACTORS, KEYS[1])
  return ''
end
local now = clock(ARGV[1])
local ends = now + 1000 * tonumber(ARGV[3])
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[3])
if KEYS[2] then try('HSET', KEYS[2], ARGV[6], int(now)) end
-- Removes expired entries, and those of a clock that was ahead: live workers register again.
for _, span in ipairs({{'-inf', int(now)}, {'(' .. int(ends), '+inf'}}) do
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', ACTORS, span[1], span[2], 'LIMIT', 0, MOST)) do
    redis.call('ZREM', ACTORS, key)
  end
end
redis.call('ZADD', ACTORS, int(ends), KEYS[1])
return ''
