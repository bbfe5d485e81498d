--- @include base
--- @flags allow-oom
-- Deletes messages of a stream that all of its groups have acknowledged, and removes dead workers of this system from a
-- group.
-- KEYS[1]  the stream
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  for how long acknowledged messages are kept in ms
-- ARGV[3]  the group
-- ARGV[4]  idle time in ms after which a worker without messages counts as dead
-- ARGV[5]  the longest expiry in ms that earlier versions set on the stream: such an expiry is removed
-- Returns the number of messages deleted
local MOST_TRIMMED = 1000 -- in one call
local MOST_FORGOTTEN = 1000 -- likewise
local OURS = 'mw.' -- prefix of the names of this system's workers

-- Returns a reply of names and values as a table.
local function named(reply)
  local has = {}
  for i = 1, #reply, 2 do has[reply[i]] = reply[i + 1] end
  return has
end

-- Removes dead workers without messages. One that returns is added again with its next read.
local function forget_gone()
  local workers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[3])
  for i = 1, math.min(#workers, MOST_FORGOTTEN) do
    local has = named(workers[i])
    if string.sub(has.name, 1, #OURS) == OURS and has.pending == 0 and has.idle >= tonumber(ARGV[4]) then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[3], has.name)
    end
  end
end

-- Removes the expiry that earlier versions set on the stream with each renewal, which would delete all its messages. A
-- later expiry is of somebody else and stays. A user without the right to do this loses nothing.
local function take_end_off()
  local left = redis.pcall('PTTL', KEYS[1])
  if type(left) == 'number' and left >= 0 and left <= tonumber(ARGV[5]) then redis.pcall('PERSIST', KEYS[1]) end
end

-- Returns true if id a of the stream is before id b.
local function before(a, b)
  local ms, n = string.match(a, '^(%d+)-(%d+)$')
  local than_ms, than_n = string.match(b, '^(%d+)-(%d+)$')
  if ms ~= than_ms then return tonumber(ms) < tonumber(than_ms) end
  return tonumber(n) < tonumber(than_n)
end

local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if groups.err or #groups == 0 then return 0 end
take_end_off()
forget_gone()
local from = int(math.max(0, clock(ARGV[1]) - tonumber(ARGV[2]))) .. '-0'
for _, group in ipairs(groups) do
  local has = named(group)
  local reached = has['last-delivered-id']
  if has.pending > 0 then reached = redis.call('XPENDING', KEYS[1], has.name)[2] end
  if before(reached, from) then from = reached end
end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', from, 'LIMIT', MOST_TRIMMED)
