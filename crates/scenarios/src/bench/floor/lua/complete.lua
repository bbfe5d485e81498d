-- KEYS    leases
-- ARGV    now; per job: id, result, list for the answer ('' for none)
-- Returns how many were this worker's to end
local ended = 0
for a = 2, #ARGV, 3 do
  if finish(KEYS[1], ARGV[a], ARGV[a + 1], ARGV[1]) then
    ended = ended + 1
    local answers = ARGV[a + 2]
    if answers ~= '' then
      redis.call('LPUSH', answers, ARGV[a + 1])
      redis.call('PEXPIRE', answers, 60000)
    end
  end
end
return ended
