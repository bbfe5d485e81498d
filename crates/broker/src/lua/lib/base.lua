--- @include layout
-- What nearly every script begins with: time, and reading records. The names of keys and the bounds, in capitals,
-- stand before this.

local unpack = table.unpack or unpack

local LONGEST_AGE = 3600000 -- ms: after so long one looks at a job that nobody may have, at the latest

-- The time in milliseconds: the server's, or `given` (tests) where that is not '0'.
local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- A whole number as Redis takes it; `..` would print 1.7e+15.
local function int(n) return string.format('%.0f', n) end

-- Whether there is a job: a list of an old client may be called like one, and a hash without a status is none.
local function exists(key) return redis.pcall('HEXISTS', key, 'status') == 1 end

-- Fields of a record by name; of what is no record, none.
local function read(key, ...)
  local values, names, found = redis.pcall('HMGET', key, ...), {...}, {}
  for i = 1, #names do found[names[i]] = values[i] or nil end
  return found
end

-- Whether a status is one after which nothing more happens by itself.
local function final(status) return status == 'finished' or status == 'error' end

-- Whether a job with this status is to be run: WAITING is the word of one that waited for others too.
local function is_dispatched(status) return status == 'dispatched' or status == WAITING end
