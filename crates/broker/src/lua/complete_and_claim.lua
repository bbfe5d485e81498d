--- @include claim/claim_fast, complete/complete_fast
--- @flags allow-oom
--- @rights late
-- Completes jobs and claims the next ones, in one step: complete.lua, then claim.lua.
-- KEYS[1..]  per completed job: its hash; then as for claim.lua
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the number of completed jobs
-- ARGV[3..]  per completed job as for complete.lua; then as for claim.lua from `want` on
-- Returns [1]  as complete.lua
--         [2]  as claim.lua
local now, n = clock(ARGV[1]), tonumber(ARGV[2])
local stale, a = complete_all(n, 3, now)
if denied then return respond(denied) end
local taken = claim(n + 1, a, now)
return respond(taken.err and taken or {stale, taken})
