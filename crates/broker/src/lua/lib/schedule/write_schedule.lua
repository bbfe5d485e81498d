--- @include base, queue/wake_scheduler
-- Writes and deletes schedules.

-- Writes the fields and values in ARGV[from..] ('' as value removes the field). `next` is when the schedule is due, '' for
-- never; `has` is its record before.
local function write_schedule(key, name, has, next, now, from)
  for i = from, #ARGV, 2 do
    if ARGV[i + 1] == '' then redis.call('HDEL', key, ARGV[i])
    else redis.call('HSET', key, ARGV[i], ARGV[i + 1]) end
  end
  redis.call('HSET', key, 'updated_at', iso(now), 'created_at', has.created_at or iso(now))
  redis.call('HDEL', key, 'trouble')
  redis.call('HSET', key, 'version', redis.call('INCR', SEQ))
  redis.call('ZADD', SCHEDULES, next == '' and '+inf' or next, name)
  if redis.call('ZRANK', SCHEDULES, name) == 0 then wake() end
end

-- Deletes a schedule.
local function drop_schedule(key, name)
  redis.call('DEL', key)
  redis.call('ZREM', SCHEDULES, name)
end
