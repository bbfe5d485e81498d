-- What nearly every script begins with: time, and reading records. The names of keys and the bounds, in capitals,
-- stand before this.

local unpack = table.unpack or unpack

-- The time in milliseconds: the server's, or `given` (tests) where that is not '0'.
local function clock(given)
  if given ~= '0' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- A whole number as Redis takes it; `..` would print 1.7e+15.
local function int(n) return string.format('%.0f', n) end

-- Milliseconds since 1970 as ISO 8601 in UTC: the days counted in eras of 400 years that begin in March.
local dates = {}
local function iso(ms)
  if dates[ms] then return dates[ms] end
  local s, div = math.floor(ms / 1000), math.floor
  local z = div(s / 86400) + 719468
  local era = div(z / 146097)
  local doe = z - era * 146097
  local yoe = div((doe - div(doe / 1460) + div(doe / 36524) - div(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + div(yoe / 4) - div(yoe / 100))
  local mp = div((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  dates[ms] = string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month,
    doy - div((153 * mp + 2) / 5) + 1, div(s / 3600) % 24, div(s / 60) % 60, s % 60, ms % 1000)
  return dates[ms]
end

-- Whether there is a job: a list of an old client may be called like one, and a hash without a status is none.
local function exists(key) return redis.pcall('HEXISTS', key, 'status') == 1 end

-- Fields of a record by name; of what is no record, none.
local function read(key, ...)
  local values, names, found = redis.pcall('HMGET', key, ...), {...}, {}
  for i = 1, #names do found[names[i]] = values[i] or nil end
  return found
end

-- The worker that a record is for, in either spelling.
local function worker_of(has)
  return (has.worker_id or '') ~= '' and has.worker_id or has.actor_id or ''
end

-- Whether a status is one after which nothing more happens by itself.
local function final(status) return status == 'finished' or status == 'error' end
