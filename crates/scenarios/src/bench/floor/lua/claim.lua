-- KEYS    queue, leases
-- ARGV    now, end of the lease, want, who
-- Returns per job: id, record
return take(KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
