-- Stores new jobs of Bananas and puts each where it waits. What is there already stays as it is, so that the call
-- can be repeated.
-- KEYS    per job: the list, or the set of those that wait for their time
-- ARGV    now; per job: id, when it is due in s ('' if at once), its record with gaps for times
-- Returns the places of those that were there already, from 1
local now, there, a = clock(ARGV[1]), {}, 2
-- A key of another kind ends the call here, with nothing written.
local at = 2
for k = 1, #KEYS do
  redis.call(ARGV[at + 1] == '' and 'LLEN' or 'ZCARD', KEYS[k])
  at = at + 4 + 2 * tonumber(ARGV[at + 2])
end
for k = 1, #KEYS do
  local id, due = ARGV[a], ARGV[a + 1]
  local record
  record, a = drafted(a + 2, now)
  if redis.call('EXISTS', JOB .. id) == 1 then
    there[#there + 1] = k
  else
    redis.call('SET', JOB .. id, record)
    if due == '' then redis.call('LPUSH', KEYS[k], id) else redis.call('ZADD', KEYS[k], due, id) end
  end
end
return there
