--- @include claim_fast, complete_fast
--- @flags allow-oom
-- Ends jobs with their results and takes the next, in one step: what finish does, and then claim.
-- KEYS    per finished job: its hash; then as claim
-- ARGV    now, number of finished jobs; per job as finish; then as claim, without now
-- Returns as finish, as claim
local now, n = clock(ARGV[1]), tonumber(ARGV[2])
local stale, a = complete_all(n, 3, now)
local taken = claim(n + 1, a, now)
return respond({stale, taken})
