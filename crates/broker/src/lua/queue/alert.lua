--- @include telemetry, queue/update_settings
-- Sets or removes the alert of a queue. Its count of failures in a row begins anew.
-- KEYS       none
-- ARGV[1]    the queue without its priority
-- ARGV[2]    the name of the setting: 'alert'
-- ARGV[3]    the number of failures in a row ('' removes the alert)
-- ARGV[4]    the first part of the ids of alert jobs
-- ARGV[5]    the queue of alert jobs
-- ARGV[6..]  field, value, … of the record of an alert job
-- Returns 1 if there was an alert before, else 0
local key = ALERTS .. ARGV[1]
local had = redis.call('DEL', key)
change(ARGV[1], 2, 1)
if ARGV[3] ~= '' then
  redis.call('HSET', key, 'after', ARGV[3], 'prefix', ARGV[4], 'queue', ARGV[5])
  for i = 6, #ARGV, 2 do redis.call('HSET', key, 'job ' .. ARGV[i], ARGV[i + 1]) end
end
return respond(had)
