-- Objects of scripts: their index sets, and their history, a list of versions. A version has its number, time and job, a line
-- each, and then the object.

-- Returns the keys of the index sets that a text names, a line each. A set of another type fails here, before anything is
-- written.
local function index_sets(space, id, names)
  local sets = {}
  for name in string.gmatch(names or '', '[^\n]+') do
    sets[#sets + 1] = space .. name
    redis.call('ZSCORE', space .. name, id)
  end
  return sets
end

-- Returns the next version of an object: its number, the bytes that it adds, and a function that writes it. A history of
-- another type fails here, before anything is written.
local function next_version(space, id, now, json, most)
  local key = space .. 'history:' .. id
  local last = redis.call('LRANGE', key, '-1', '-1')[1]
  local number = (last and tonumber(string.match(last, '^(%d+)\n')) or 0) + 1
  local entry = table.concat({int(number), int(now), ARGV[4], json}, '\n')
  local added, surplus = #entry, redis.call('LLEN', key) + 1 - tonumber(most)
  if surplus > 0 then
    for _, old in ipairs(redis.call('LRANGE', key, '0', int(surplus - 1))) do added = added - #old end
  end
  local function write()
    redis.call('RPUSH', key, entry)
    redis.call('LTRIM', key, '-' .. most, '-1')
  end
  return {number = number, added = added, write = write}
end
