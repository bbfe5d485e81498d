--- @include telemetry
--- @flags allow-oom
-- Sets the phase of a type's migration, if the phase is still the one that the caller read.
-- KEYS[1..]  lists that must be empty
-- ARGV[1]    the time in ms; not used
-- ARGV[2]    the caller, for the event
-- ARGV[3]    the type
-- ARGV[4]    the setting that the caller read ('' for none)
-- ARGV[5]    the new setting ('' for none)
-- Returns 'set'      the setting is the new one
--         'changed'  the setting was another one
--         'left'     one of the lists is not empty
local field = 'migration:' .. ARGV[3]
if (redis.call('HGET', CONFIG, field) or '') ~= ARGV[4] then return respond('changed') end
for _, list in ipairs(KEYS) do
  if redis.call('EXISTS', list) == 1 then return respond('left') end
end
if ARGV[5] == '' then redis.call('HDEL', CONFIG, field)
else redis.call('HSET', CONFIG, field, ARGV[5]) end
event('', 'migration', ARGV[2], ARGV[3] .. ' ' .. (ARGV[5] ~= '' and ARGV[5] or 'off'))
return respond('set')
