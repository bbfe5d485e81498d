--- @include base, objects/version
-- Deletes an object of a space with its index. Its history stays, with a last version that has no content.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the space
-- ARGV[3]  the id
-- ARGV[4]  the job that deletes it
-- ARGV[5]  the number of versions that are kept
-- Returns 1, or 0 if there is no such object
local now, id = clock(ARGV[1]), ARGV[3]
local space = OBJECTS .. ARGV[2] .. ':'
local key = space .. 'object:' .. id
local old = redis.call('HMGET', key, 'type', 'json', 'index')
if not old[1] then return 0 end
local sets, usage = index_sets(space, id, old[3]), redis.call('HMGET', USAGE, 'objects', 'bytes')
local version = next_version(space, id, now, '', ARGV[5])
for _, set in ipairs(sets) do redis.call('ZREM', set, id) end
redis.call('DEL', key)
version.write()
local objects, bytes = tonumber(usage[1] or 0) - 1, tonumber(usage[2] or 0) - #(old[2] or '') + version.added
redis.call('HSET', USAGE, 'objects', int(math.max(0, objects)), 'bytes', int(math.max(0, bytes)))
return 1
