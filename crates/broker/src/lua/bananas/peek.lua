--- @include bananas
--- @flags allow-oom
-- Tells what waits in a place of Bananas, the next one first, for who moves it elsewhere. Changes nothing.
-- KEYS    1: a list, or the set of those that wait for their time
-- ARGV    1: now
--         2: how many to pass over
--         3: most
-- Returns how many there are; per job: id, its time as it stands there ('' in a list), what its record is, its
--         record, when it was done if its result says that it is
local MOST_BYTES = 8388608 -- of records in one answer
local from, most, found, bytes = tonumber(ARGV[2]), tonumber(ARGV[3]), {}, 0

local function tell(id, time)
  if bytes >= MOST_BYTES then return end
  local state, record = look(id)
  found[#found + 1] = {id, time, state, record, done_at(id)}
  bytes = bytes + #record
end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'list' then
  local ids = redis.call('LRANGE', KEYS[1], -from - most, -from - 1)
  for i = #ids, 1, -1 do tell(ids[i], '') end
  return {redis.call('LLEN', KEYS[1]), found}
elseif kind == 'zset' then
  local ids = redis.call('ZRANGE', KEYS[1], from, from + most - 1, 'WITHSCORES')
  for i = 1, #ids, 2 do tell(ids[i], ids[i + 1]) end
  return {redis.call('ZCARD', KEYS[1]), found}
end
return {0, found}
