-- Looks for keys in the database of a context, or of the node: a page of them.
-- KEYS    none
-- ARGV    1: the database ('' for the one of the connection)
--         2: the cursor, '0' at first
--         3: the pattern
--         4: how many keys are looked at, more or less
-- Returns the cursor of the next page, '0' after the last; the keys
if ARGV[1] ~= '' then redis.call('SELECT', ARGV[1]) end
return redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3], 'COUNT', ARGV[4])
