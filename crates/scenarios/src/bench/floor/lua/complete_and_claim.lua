-- Ends what was run and takes the next ones.
-- KEYS    queue, leases
-- ARGV    now, end of the lease, want, who; per job: id, result
-- Returns per job: id, record
for a = 5, #ARGV, 2 do finish(KEYS[2], ARGV[a], ARGV[a + 1], ARGV[1]) end
return take(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
