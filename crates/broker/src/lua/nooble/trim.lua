-- Deletes what all groups of a stream have done with: what workers of other makes acknowledge stays in it for ever.
-- KEYS    the stream
-- ARGV    now, for how long what is done is kept in ms
-- Returns the number of messages deleted
local MOST_TRIMMED = 1000 -- in one call

-- Whether one id of the stream comes before another.
local function before(a, b)
  local ms, n = string.match(a, '^(%d+)-(%d+)$')
  local than_ms, than_n = string.match(b, '^(%d+)-(%d+)$')
  if ms ~= than_ms then return tonumber(ms) < tonumber(than_ms) end
  return tonumber(n) < tonumber(than_n)
end

local groups = redis.pcall('XINFO', 'GROUPS', KEYS[1])
if groups.err or #groups == 0 then return 0 end
local from = whole(math.max(0, clock(ARGV[1]) - tonumber(ARGV[2]))) .. '-0'
for _, group in ipairs(groups) do
  local has = {}
  for i = 1, #group, 2 do has[group[i]] = group[i + 1] end
  local reached = has['last-delivered-id']
  if has.pending > 0 then reached = redis.call('XPENDING', KEYS[1], has.name)[2] end
  if before(reached, from) then from = reached end
end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', from, 'LIMIT', MOST_TRIMMED)
