--- @include base
--- @flags allow-oom
-- Deletes what all groups of a stream have done with: what workers of other makes acknowledge stays in it for ever.
-- And forgets workers of ours that are gone: a group would list whoever was killed for ever.
-- KEYS    1: the stream
-- ARGV    1: now
--         2: for how long what is done is kept in ms
--         3: group
--         4: how long a worker was not heard of that is gone in ms
--         5: the latest end that earlier versions of ours set, in ms from now
-- Returns the number of messages deleted
local MOST_TRIMMED = 1000 -- in one call
local MOST_FORGOTTEN = 1000 -- likewise
local OURS = 'mw.' -- what the names of our workers begin with

-- What a reply says, by its names.
local function named(reply)
  local has = {}
  for i = 1, #reply, 2 do has[reply[i]] = reply[i + 1] end
  return has
end

-- Who has nothing in hand loses nothing by it: a worker that comes back is known again when it asks.
local function forget_gone()
  local workers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[3])
  for i = 1, math.min(#workers, MOST_FORGOTTEN) do
    local has = named(workers[i])
    if string.sub(has.name, 1, #OURS) == OURS and has.pending == 0 and has.idle >= tonumber(ARGV[4]) then
      redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[3], has.name)
    end
  end
end

-- Earlier versions set an end to the stream with each renewal, and all its messages would go with it. A later one is
-- somebody else's; Nooble4 sets none. A user who may not say this has lost nothing by it.
local function take_end_off()
  local left = redis.pcall('PTTL', KEYS[1])
  if type(left) == 'number' and left >= 0 and left <= tonumber(ARGV[5]) then redis.pcall('PERSIST', KEYS[1]) end
end

-- Whether one id of the stream comes before another.
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
