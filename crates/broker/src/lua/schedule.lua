--- @include base, wake_scheduler
--- @flags allow-oom
-- Writes a schedule, or forgets it, unless somebody else has changed it meanwhile.
-- KEYS    1: the schedule's hash
-- ARGV    1: now
--         2: its name
--         3: its version ('' if there is to be none)
--         4: its position ('' if that does not matter)
--         5: when it is due next ('' if never; 'gone' to forget it)
--         … fields and values; '' as value takes away
-- Returns 1, or 0 if it is not as expected
local key, now = KEYS[1], clock(ARGV[1])
local has = read(key, 'version', 'position', 'created_at')
if (has.version or '') ~= ARGV[3] then return 0 end
if ARGV[4] ~= '' and has.position ~= ARGV[4] then return 0 end
if ARGV[5] == 'gone' then
  redis.call('DEL', key)
  redis.call('ZREM', SCHEDULES, ARGV[2])
  return 1
end
for i = 6, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', key, ARGV[i])
  else redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
end
redis.call('HSET', key, 'updated_at', stamp(now), 'created_at', has.created_at or stamp(now))
redis.call('HDEL', key, 'trouble')
redis.call('HSET', key, 'version', redis.call('INCR', SEQ))
redis.call('ZADD', SCHEDULES, ARGV[5] == '' and '+inf' or ARGV[5], ARGV[2])
if redis.call('ZRANK', SCHEDULES, ARGV[2]) == 0 then wake() end
return 1
