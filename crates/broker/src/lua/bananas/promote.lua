--- @include protocols/bananas
--- @flags allow-oom
-- Moves delayed jobs of Bananas to the lists of their routes, each once. An entry whose record cannot be read becomes a
-- dead letter. What has changed since the caller read it stays.
-- KEYS[1..]  per job: its list (of a dead letter, the list that counts it)
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2..]  per job: id, its time as the caller read it, digest of its record, why it is a dead letter ('' if it is
--            none), record as a template (`drafted`)
-- Returns the positions of the jobs that were moved or became dead letters, from 1
local now, done, a = clock(ARGV[1]), {}, 2
for k = 1, #KEYS do
  local id, time, seen, why = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local record
  record, a = drafted(a + 4, now)
  local there = redis.call('ZSCORE', SCHEDULED, id) == time and digest(look(id)) == seen
  -- If the key of its list is no list, the job stays delayed.
  if there and why ~= '' then
    may_tell(id)
    bury(id, record, KEYS[k])
    tell(id, now, 0, 'error', why)
  else
    there = there and type(try('LPUSH', KEYS[k], id)) == 'number'
    if there and record then redis.call('SET', JOB .. id, record) end
  end
  if there then
    redis.call('ZREM', SCHEDULED, id)
    done[#done + 1] = k
  end
end
return done
