--- @include complete_fast
--- @flags allow-oom
-- Ends jobs with their results, each if its token is the one in force. Said twice, it changes nothing.
-- KEYS    per job: its hash
-- ARGV    now; then per job: id, token, output, stdout, stderr
-- Returns the places of those that are not this worker's any more, from 1
local stale = complete_all(#KEYS, 2, clock(ARGV[1]))
return respond(stale)
