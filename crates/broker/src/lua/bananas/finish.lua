--- @include bananas
--- @flags allow-oom
-- Ends jobs of Bananas with their results, each if its token is the one in force: result, record and word in one step.
-- KEYS
-- ARGV    now, number of jobs; per job: under what it is held, token, digest of the record that was changed, duration in ms, the result
--         ('' for none), the record with gaps for times
-- Returns per job: 'finished', or 'stale' if it is not this worker's any more, or 'changed' if its record is another
--         one now; that of jobs without an id is another job's then, and stays as it is
local now, a, told, ended_of, ms_of = clock(ARGV[1]), 3, {}, {}, {}

local function finish(hold, token, seen, took, result, ended)
  local mark, list, id = holder(hold)
  if mark ~= token then return 'stale' end
  if digest(look(id)) ~= seen then
    if id ~= '' then return 'changed' end
    ended = nil
  end
  if result == '' then tell(id, now, took) else tell(id, now, took, 'result', result) end
  let_go(hold, list, id)
  redis.call('DEL', LOST .. id)
  if ended then redis.call('SET', JOB .. id, ended, 'PX', COMPLETED_FOR) end
  ended_of[list] = (ended_of[list] or 0) + 1
  ms_of[list] = (ms_of[list] or 0) + tonumber(took)
  return 'finished'
end

for k = 1, tonumber(ARGV[2]) do
  local ended, after = drafted(a + 5, now)
  told[k] = finish(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ended)
  a = after
end
for list, n in pairs(ended_of) do
  count(list, 'finished', n)
  count(list, 'run_ms', int(ms_of[list]))
end
return told
