--- @include bananas
--- @flags allow-oom
-- Moves a job of Bananas that stands on a list without a route to the list of its route, if the token is the one in
-- force, and while a worker of ours takes from there: Bananas' own may not.
-- KEYS    1: the list of its route
-- ARGV    1: now
--         2: under what it is held
--         3: token
--         4: the route
-- Returns 'moved', 'nobody' if no worker of ours is there for it, or 'stale' if the job is not this worker's
local hold = ARGV[2]
local token, list, id = holder(hold)
if token ~= ARGV[3] then return 'stale' end
local alive = tonumber(redis.call('ZSCORE', ROUTES, ARGV[4]) or '') or 0
if alive <= clock(ARGV[1]) then return 'nobody' end
redis.call('LPUSH', KEYS[1], id)
let_go(hold, list, id)
count(list, 'released')
return 'moved'
