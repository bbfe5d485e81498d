--- @flags no-writes
-- Reads objects of a space.
-- KEYS       none
-- ARGV[1]    the space
-- ARGV[2]    the kind of read: object, history, all
-- ARGV[3]    the most objects or versions
-- ARGV[4]    object, history: the id; all: the number of objects to skip
-- ARGV[5]    all: the bytes of JSON after which no further object is read
-- ARGV[6..]  all: names of index sets, all of which have the objects
-- Returns object: the fields of the object; history: versions, the oldest first; all: id and fields of each object, in the
--         order of their creation. The fields are type, JSON, version, created, changed
local space, most = OBJECTS .. ARGV[1] .. ':', tonumber(ARGV[3])
local function fields(id) return redis.call('HMGET', space .. 'object:' .. id, 'type', 'json', 'version', 'created', 'changed') end
if ARGV[2] == 'object' then return fields(ARGV[4]) end
if ARGV[2] == 'history' then
  return redis.call('LRANGE', space .. 'history:' .. ARGV[4], string.format('%.0f', -most), '-1')
end

-- Members of the smallest set are looked up in the others, at most so many.
local LOOKED_UP = 10000
local smallest, size
for i = 6, #ARGV do
  local many = redis.call('ZCARD', space .. ARGV[i])
  if not size or many < size then smallest, size = i, many end
end
local function is_in_others(id)
  for i = 6, #ARGV do
    if i ~= smallest and not redis.call('ZSCORE', space .. ARGV[i], id) then return false end
  end
  return true
end
local found, bytes, skip = {}, 0, tonumber(ARGV[4])
local from, last = '0', LOOKED_UP - 1
if #ARGV == 6 then
  from, last, skip = ARGV[4], tonumber(ARGV[4]) + most - 1, 0
end
for _, id in ipairs(redis.call('ZRANGE', space .. ARGV[smallest], from, string.format('%.0f', last))) do
  if #found >= 2 * most or bytes > tonumber(ARGV[5]) then break end
  if is_in_others(id) then
    if skip > 0 then
      skip = skip - 1
    else
      found[#found + 1] = id
      found[#found + 1] = fields(id)
      bytes = bytes + #(found[#found][2] or '')
    end
  end
end
return found
