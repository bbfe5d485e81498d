--- @include telemetry
--- @flags allow-oom
-- Sets how far the migration of a type is, if it is still as the caller saw it.
-- KEYS    1: lists that have to be empty
-- ARGV    1: now
--         2: who
--         3: type
--         4: the setting as it was ('' for none)
--         5: as it is to be ('' for none)
-- Returns 'set', 'changed' if somebody else was faster, or 'left' if one of the lists is not empty
local field = 'migration:' .. ARGV[3]
if (redis.call('HGET', CONFIG, field) or '') ~= ARGV[4] then return respond('changed') end
for _, list in ipairs(KEYS) do
  if redis.call('EXISTS', list) == 1 then return respond('left') end
end
if ARGV[5] == '' then redis.call('HDEL', CONFIG, field)
else redis.call('HSET', CONFIG, field, ARGV[5]) end
event('', 'migration', ARGV[2], ARGV[3] .. ' ' .. (ARGV[5] ~= '' and ARGV[5] or 'off'))
return respond('set')
