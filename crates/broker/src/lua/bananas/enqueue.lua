--- @include bananas
-- Stores new jobs of Bananas and puts each where it waits. What is there already stays as it is, so that the call
-- can be repeated.
-- KEYS    per job: the list that it belongs to
-- ARGV    now; per job: id, when it is due in s ('' if at once), its record with gaps for times
-- Returns the places of those that were there already, from 1
local now, there, a = clock(ARGV[1]), {}, 2
-- A key of another kind ends the call here, with nothing written.
local at = 2
for k = 1, #KEYS do
  if ARGV[at + 1] == '' then redis.call('LLEN', KEYS[k]) else redis.call('ZCARD', SCHEDULED) end
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
    if due == '' then redis.call('LPUSH', KEYS[k], id) else redis.call('ZADD', SCHEDULED, due, id) end
    count(KEYS[k], 'created')
  end
end
return there
