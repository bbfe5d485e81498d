--- @include nooble
-- Puts a dead letter back into its queue, where it has all its runs again.
-- KEYS    1: the queue
--         2: the dead letters
-- ARGV    1: now
--         2: group ('' for a list)
--         3: id of the dead letter
-- Returns the queue that it came from, and only if that is this one it was put back; or '' if it is not there
local entry = redis.call('XRANGE', KEYS[2], ARGV[3], ARGV[3])[1]
if not entry then return '' end
local from = KEYS[1] -- a letter of an older version does not say it
for i = 1, #entry[2], 2 do
  if entry[2][i] == 'queue' then from = entry[2][i + 1] end
end
if from ~= KEYS[1] then return from end
put(KEYS[1], entry[2][2])
redis.call('XDEL', KEYS[2], ARGV[3])
return from
