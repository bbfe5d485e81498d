-- Stores jobs and pushes their ids. A job whose id exists is left as it is.
-- KEYS    per job: its hash, its queue
-- ARGV    now; then per job: id, number of strings that follow, field, value, …
-- Returns per job 1 (stored) or 0 (there was one of that id)
local unpack = table.unpack or unpack
local at = iso(clock(ARGV[1]))
local stored, a = {}, 2
for k = 1, #KEYS, 2 do
  local id, n = ARGV[a], tonumber(ARGV[a + 1])
  if redis.call('EXISTS', KEYS[k]) == 1 then
    stored[#stored + 1] = 0
  else
    -- The queue first: if it is no list the script ends here, with nothing written for this job.
    redis.call('LPUSH', KEYS[k + 1], id)
    redis.call('HSET', KEYS[k], 'status', 'dispatched', 'created_at', at, 'updated_at', at,
      unpack(ARGV, a + 2, a + 1 + n))
    stored[#stored + 1] = 1
  end
  a = a + 2 + n
end
return stored
