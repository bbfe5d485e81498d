--- @flags no-writes
-- Lists one page of the keys in the database of a context, or of the node.
-- KEYS[1]  the prefix of the keys, for its slot
-- ARGV[1]  the database ('' for that of the connection)
-- ARGV[2]  the cursor, '0' at first
-- ARGV[3]  the pattern
-- ARGV[4]  about how many keys are visited
-- Returns [1]  the cursor of the next page, '0' after the last
--         [2]  the keys
if ARGV[1] ~= '' then redis.call('SELECT', ARGV[1]) end
return redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3], 'COUNT', ARGV[4])
