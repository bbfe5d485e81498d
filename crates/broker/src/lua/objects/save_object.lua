--- @include base, objects/version
-- Stores an object of a space, with its index, and adds a version to its history.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the space
-- ARGV[3]    the id
-- ARGV[4]    the job that stores it
-- ARGV[5]    the type
-- ARGV[6]    the object, JSON
-- ARGV[7]    the limit of objects in all spaces
-- ARGV[8]    the limit of bytes in all spaces
-- ARGV[9]    the number of versions that are kept
-- ARGV[10..]  the names of its index sets
-- Returns 'saved' and the version; 'type' and the type of the object that has the id; 'objects' or 'bytes' for an exceeded
--         limit
local now, id, kind, json = clock(ARGV[1]), ARGV[3], ARGV[5], ARGV[6]
local space = OBJECTS .. ARGV[2] .. ':'
local key = space .. 'object:' .. id
local old = redis.call('HMGET', key, 'type', 'json', 'index', 'created')
if old[1] and old[1] ~= kind then return {'type', old[1]} end

local index = {}
for i = 10, #ARGV do index[#index + 1] = ARGV[i] end
local sets, old_sets = index_sets(space, id, table.concat(index, '\n')), index_sets(space, id, old[3])

local usage = redis.call('HMGET', USAGE, 'objects', 'bytes')
local version = next_version(space, id, now, json, ARGV[9])
local objects = tonumber(usage[1] or 0) + (old[1] and 0 or 1)
local bytes = tonumber(usage[2] or 0) + #json - #(old[2] or '') + version.added
if objects > tonumber(ARGV[7]) then return {'objects'} end
if bytes > tonumber(ARGV[8]) then return {'bytes'} end

local created, stays = old[4] or int(now), {}
for _, set in ipairs(sets) do
  stays[set] = true
  redis.call('ZADD', set, created, id)
end
for _, set in ipairs(old_sets) do
  if not stays[set] then redis.call('ZREM', set, id) end
end
redis.call('HSET', key, 'type', kind, 'json', json, 'index', table.concat(index, '\n'), 'created', created, 'changed', int(now),
  'version', int(version.number))
version.write()
redis.call('HSET', USAGE, 'objects', int(objects), 'bytes', int(bytes))
return {'saved', int(version.number)}
