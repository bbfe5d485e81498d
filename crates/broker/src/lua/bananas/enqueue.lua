--- @include protocols/bananas
-- Stores new jobs of Bananas, each with its record and in its list or the set of delayed jobs. A job whose record
-- exists stays as it is, so the call can be repeated.
-- KEYS[1..]  per job: its list
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2..]  per job: id, due time in s ('' for at once), record as a template (`drafted`)
-- Returns the positions of the jobs that existed, from 1
local now, there, a = clock(ARGV[1]), {}, 2
-- Ends the call if a key is of another kind, with nothing written.
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
