--- @include layout
-- Basics of nearly every script: time, and reading records. Names in capitals are constants that the caller puts in.

local unpack = table.unpack or unpack

local LONGEST_AGE = 3600000 -- ms: longest time until a suspected orphan is checked

-- Returns the time in ms: the server's if `given` is '0', else `given` (for tests). If that clock goes back, the time goes
-- on from the latest one that was seen, at half speed until the clock has caught up: what was due stays due, and what
-- was written before does not wait for an hour. CLOCK has that time, the ms ahead, since when, and the number of steps.
local BACK = 2000 -- ms: smaller steps change nothing
local shown -- the clock's own time
local function clock(given)
  shown = tonumber(given)
  if given == '0' then
    local t = redis.call('TIME')
    shown = t[1] * 1000 + math.floor(t[2] / 1000)
  end
  local seen = CLOCK and redis.pcall('GET', CLOCK)
  if type(seen) ~= 'string' then return shown end
  local latest, ahead, since, steps = tonumber(seen), 0, 0, 0
  if latest and shown >= latest - BACK then return shown end
  if not latest then
    local all = {string.match(seen, '^(%d+) (%d+) (%d+) (%d+)$')}
    latest, ahead, since, steps = tonumber(all[1]), tonumber(all[2]), tonumber(all[3]), tonumber(all[4])
    if not steps then return shown end
  end
  local function ahead_at(ms) return math.max(0, ahead - math.floor(math.max(0, ms - since) / 2)) end
  if shown < latest - BACK then
    ahead, since, steps = latest + ahead_at(latest) - shown, shown, steps + 1
    local note = 'the server\'s clock went back by ' .. math.floor((latest - shown) / 1000) .. ' s'
    redis.pcall('SET', CLOCK, string.format('%.0f %.0f %.0f %.0f', shown, ahead, since, steps))
    redis.pcall('XADD', EVENTS, 'MAXLEN', '~', MOST_EVENTS, '*', 'job', 'clock', 'event', 'back', 'by', '', 'note', note)
  end
  return shown + ahead_at(shown)
end

-- Formats a whole number for Redis; `..` would print 1.7e+15.
local function int(n) return string.format('%.0f', n) end

-- Calls a command. Returns the error if the key has another type; any other error, such as a missing right, says nothing
-- about the key, and ends the script.
local function try(...)
  local answer = redis.pcall(...)
  if type(answer) == 'table' and answer.err and string.sub(answer.err, 1, 9) ~= 'WRONGTYPE' then error(answer) end
  return answer
end

-- Returns true if the key is a job: a hash with a status. A legacy list may have the key of a job.
local function exists(key) return own_key(key) and try('HEXISTS', key, 'status') == 1 end

-- Returns fields of a record by name; none if the key is no record, or of another context; and true if it has another
-- type.
local function read(key, ...)
  local values, names, found = own_key(key) and try('HMGET', key, ...) or {}, {...}, {}
  for i = 1, #names do found[names[i]] = values[i] or nil end
  return found, values.err and true
end

-- Returns true for the status of an ended job.
local function final(status) return status == 'finished' or status == 'error' end

-- Returns true for the status of a job that is to run. WAITING: it has had prerequisites.
local function is_dispatched(status) return status == 'dispatched' or status == WAITING end
