--- @include protocols/bananas
--- @flags allow-oom
-- Lists the delayed jobs of Bananas whose time has come. The caller reads the records; promote.lua moves the jobs.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most jobs
-- Returns [1]  per job: id, its time as stored there, state of its record (`look_at`), record
--         [2]  in how many ms the next job is due, -1 for none
local MOST_BYTES = 8388608 -- of records in one answer
local now, found, bytes = clock(ARGV[1]), {}, 0
local at = string.format('%.3f', now / 1000)
local due = redis.call('ZRANGEBYSCORE', SCHEDULED, '-inf', at, 'WITHSCORES', 'LIMIT', 0, ARGV[2])
for i = 1, #due, 2 do
  local state, record = look(due[i])
  found[#found + 1] = {due[i], due[i + 1], state, record}
  bytes = bytes + #record
  if bytes >= MOST_BYTES then break end
end
local next = redis.call('ZRANGEBYSCORE', SCHEDULED, '(' .. at, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
return {found, next[2] and int(math.min(2147483647, math.ceil(tonumber(next[2]) * 1000 - now))) or '-1'}
