--- @include complete/complete_fast
--- @flags allow-oom
--- @rights late
-- Completes jobs with their results, each if its token is the current one. A repeated call changes nothing.
-- KEYS[1..]  per job: its hash
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2..]  per job: id, fencing token, result, stdout, stderr
-- Returns the positions of the jobs whose token was not the current one, from 1
local stale = complete_all(#KEYS, 2, clock(ARGV[1]))
return respond(denied or stale)
