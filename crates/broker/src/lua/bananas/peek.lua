--- @include protocols/bananas
--- @flags allow-oom
-- Reads the jobs in a list or in the set of delayed jobs of Bananas, the next one first. Changes nothing.
-- KEYS[1]  the list or the set
-- ARGV[1]  the time in ms; not used
-- ARGV[2]  how many jobs to skip
-- ARGV[3]  most jobs
-- Returns [1]  the number of jobs there
--         [2]  per job: id, its due time ('' in a list), state of its record (`look_at`), record, time of its completion
--              ('' if its result is not that of a completed job)
local MOST_BYTES = 8388608 -- of records in one answer
local from, most, found, bytes = tonumber(ARGV[2]), tonumber(ARGV[3]), {}, 0

local function add(id, time)
  if bytes >= MOST_BYTES then return end
  local state, record = look(id)
  found[#found + 1] = {id, time, state, record, done_at(id)}
  bytes = bytes + #record
end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'list' then
  local ids = redis.call('LRANGE', KEYS[1], -from - most, -from - 1)
  for i = #ids, 1, -1 do add(ids[i], '') end
  return {redis.call('LLEN', KEYS[1]), found}
elseif kind == 'zset' then
  local ids = redis.call('ZRANGE', KEYS[1], from, from + most - 1, 'WITHSCORES')
  for i = 1, #ids, 2 do add(ids[i], ids[i + 1]) end
  return {redis.call('ZCARD', KEYS[1]), found}
end
return {0, found}
