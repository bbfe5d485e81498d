--- @include layout
-- Basics of nearly every script: time, and reading records. Names in capitals are constants that the caller puts in.

local unpack = table.unpack or unpack

local LONGEST_AGE = 3600000 -- ms: longest time until a suspected orphan is checked

-- Returns the time in ms: the server's if `given` is '0', else `given` (for tests).
local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- Formats a whole number for Redis; `..` would print 1.7e+15.
local function int(n) return string.format('%.0f', n) end

-- Returns true if the key is a job: a hash with a status. A legacy list may have the key of a job.
local function exists(key) return own_key(key) and redis.pcall('HEXISTS', key, 'status') == 1 end

-- Returns fields of a record by name; none if the key is no record, or of another context.
local function read(key, ...)
  local values, names, found = own_key(key) and redis.pcall('HMGET', key, ...) or {}, {...}, {}
  for i = 1, #names do found[names[i]] = values[i] or nil end
  return found
end

-- Returns true for the status of an ended job.
local function final(status) return status == 'finished' or status == 'error' end

-- Returns true for the status of a job that is to run. WAITING: it has had prerequisites.
local function is_dispatched(status) return status == 'dispatched' or status == WAITING end
