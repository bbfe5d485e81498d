--- @include base
-- Copies the counters of queues into their histories, once in each hour. The counters at two hours give the jobs between.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    most lists copied in one call
-- ARGV[3]    '1' if ARGV has had all lists with counters, else ''
-- ARGV[4..]  lists that may be new
-- Returns [1]  the number of lists copied
--         [2]  1 if more are left
--         [3]  the ms until the next hour
--         [4]  1 if all lists with counters are known
local HOUR = 3600000 -- ms
local MOST_LISTS = 1000 -- histories: some 4 KB each
local MOST_ENTRIES = 72 -- three days
local ALL_KNOWN = '' -- a member that is no list, and never due
local now, most = clock(ARGV[1]), tonumber(ARGV[2])
local hour = math.floor(now / HOUR)

-- Returns the counters of a list with blanks; nil if it has none.
local function counters(name)
  local has = try('HMGET', STATS .. name, 'created', 'created:foreign', 'finished', 'failed', 'retried', 'run_ms')
  local n, any = {}, false
  for i = 1, 6 do
    any = any or has[i]
    n[i] = tonumber(has[i] or 0) or 0
  end
  return any and string.format('%.0f %.0f %.0f %.0f %.0f', n[1] + n[2], n[3], n[4], n[5], n[6])
end

-- Adds an entry for this hour, and deletes those before three days.
local function note(name, values)
  local key = HISTORY .. name
  try('ZREMRANGEBYSCORE', key, '-inf', int(hour - MOST_ENTRIES))
  if values then try('ZADD', key, int(hour), int(hour) .. ' ' .. values) end
end

local all_known = redis.call('ZSCORE', HISTORIES, ALL_KNOWN) and true
for i = 4, #ARGV do
  local name = string.sub(ARGV[i], #QUEUES + 1)
  local is_list = string.sub(ARGV[i], 1, #QUEUES) == QUEUES and name ~= ALL_KNOWN
  if is_list and not redis.call('ZSCORE', HISTORIES, name) and redis.call('ZCARD', HISTORIES) <= MOST_LISTS then
    local values = counters(name)
    if values then
      -- A new list has counted from 0. Lists that are older than the histories begin with what they had.
      note(name, all_known and '0 0 0 0 0' or values)
      redis.call('ZADD', HISTORIES, int(hour), name)
    end
  end
end
if ARGV[3] == '1' then redis.call('ZADD', HISTORIES, 'inf', ALL_KNOWN) end

local due = redis.call('ZRANGEBYSCORE', HISTORIES, '-inf', '(' .. int(hour), 'LIMIT', 0, most)
for _, name in ipairs(due) do
  local values = counters(name)
  note(name, values)
  if not values and redis.call('EXISTS', HISTORY .. name) == 0 then
    redis.call('ZREM', HISTORIES, name)
  else
    redis.call('ZADD', HISTORIES, int(hour), name)
  end
end
return {#due, #due == most and 1 or 0, int((hour + 1) * HOUR - now), (all_known or ARGV[3] == '1') and 1 or 0}
