--- @include base
--- @flags allow-oom
-- Says that a worker is there under its name; or, with no time to live, that it is there no more.
-- KEYS    1: its presence key
-- ARGV    1: now
--         2: what to write
--         3: time to live in s
--         4: the text that makes it this process' own
--         5: what may be written over ('' for nothing)
-- Returns '' or what another worker of that name wrote, which is left alone
local MOST = 1000 -- entries of others that are cleared away in one call
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
-- Those that ended, and those that a clock put there that was ahead: who lives says so again.
for _, span in ipairs({{'-inf', int(now)}, {'(' .. int(ends), '+inf'}}) do
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', ACTORS, span[1], span[2], 'LIMIT', 0, MOST)) do
    redis.call('ZREM', ACTORS, key)
  end
end
redis.call('ZADD', ACTORS, int(ends), KEYS[1])
return ''
