-- Puts a dead letter back into its queue, where it has all its runs again.
-- KEYS    the queue, the dead letters
-- ARGV    now, group ('' for a list), id of the dead letter
-- Returns 1, or 0 if it is not there
local entry = redis.call('XRANGE', KEYS[2], ARGV[3], ARGV[3])[1]
if not entry then return 0 end
put(KEYS[1], entry[2][2])
redis.call('XDEL', KEYS[2], ARGV[3])
return 1
