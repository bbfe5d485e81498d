--- @include protocols/nooble
-- Retries a dead letter: puts it into its queue as if it had never run.
-- KEYS[1]  the queue
-- KEYS[2]  the dead letters
-- ARGV[1]  the time in ms; not used
-- ARGV[2]  the group ('' for a list)
-- ARGV[3]  the dead letter's id
-- Returns the queue of the dead letter, '' if it is missing; it was moved only if its queue is this one
local entry = redis.call('XRANGE', KEYS[2], ARGV[3], ARGV[3])[1]
if not entry then return '' end
local from = KEYS[1] -- a letter of an older version has no queue
for i = 1, #entry[2], 2 do
  if entry[2][i] == 'queue' then from = entry[2][i + 1] end
end
if from ~= KEYS[1] then return from end
put(KEYS[1], entry[2][2])
redis.call('XDEL', KEYS[2], ARGV[3])
return from
