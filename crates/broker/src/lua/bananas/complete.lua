--- @include protocols/bananas
--- @flags allow-oom
-- Completes jobs of Bananas, each if its token is the current one: result, record and notification in one step.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the number of jobs
-- ARGV[3..]  per job: lease id, fencing token, digest of the record that was changed, duration in ms, result ('' for
--            none), record as a template (`drafted`)
-- Returns per job 'finished'; 'stale' if the token is not the current one; 'changed' if the record was changed. A
--         record of a job without an id that is another job's by now stays, and the job is 'finished'
local now, a, answers, ended_of, ms_of = clock(ARGV[1]), 3, {}, {}, {}

local function finish(hold, token, seen, took, result, ended)
  local mark, list, id = lease_of(hold)
  if mark ~= token then return 'stale' end
  if digest(look(id)) ~= seen then
    if id ~= '' then return 'changed' end
    ended = nil
  end
  may_tell(id)
  if result == '' then tell(id, now, took) else tell(id, now, took, 'result', result) end
  end_lease(hold, list, id)
  redis.call('DEL', LOST .. id)
  if ended then redis.call('SET', JOB .. id, ended, 'PX', COMPLETED_FOR) end
  ended_of[list] = (ended_of[list] or 0) + 1
  ms_of[list] = (ms_of[list] or 0) + tonumber(took)
  return 'finished'
end

for k = 1, tonumber(ARGV[2]) do
  local ended, after = drafted(a + 5, now)
  answers[k] = finish(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ended)
  a = after
end
for list, n in pairs(ended_of) do
  count(list, 'finished', n)
  count(list, 'run_ms', int(ms_of[list]))
end
return answers
