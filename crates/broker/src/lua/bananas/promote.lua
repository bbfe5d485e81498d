--- @include bananas
--- @flags allow-oom
-- Moves jobs of Bananas whose time has come to the lists of their routes, each once, whoever else does the same; an
-- entry without a record that says where it belongs becomes a dead letter. What has changed meanwhile is left for the
-- next look.
-- KEYS    per job: the list; of one that becomes a dead letter, the one that it counts for
-- ARGV    now; per job: id, its time as it stood there, digest of its record, why it is a dead letter ('' if it is
--         none), its record with gaps for times
-- Returns the places of those that were moved or buried, from 1
local now, done, a = clock(ARGV[1]), {}, 2
for k = 1, #KEYS do
  local id, time, seen, why = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local record
  record, a = drafted(a + 4, now)
  local there = redis.call('ZSCORE', SCHEDULED, id) == time and digest(look(id)) == seen
  -- A key that is no list leaves the job where it is.
  if there and why ~= '' then
    bury(id, record, KEYS[k])
    tell(id, now, 0, 'error', why)
  else
    there = there and type(redis.pcall('LPUSH', KEYS[k], id)) == 'number'
    if there and record then redis.call('SET', JOB .. id, record) end
  end
  if there then
    redis.call('ZREM', SCHEDULED, id)
    done[#done + 1] = k
  end
end
return done
