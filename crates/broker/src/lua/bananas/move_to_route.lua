--- @include protocols/bananas
--- @flags allow-oom
-- Moves a claimed job of Bananas to the list of its route, if the token is the current one and a worker of this system
-- takes from that route: Bananas' own workers may not.
-- KEYS[1]  the list of the route
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the lease id
-- ARGV[3]  the fencing token
-- ARGV[4]  the route
-- Returns 'moved', 'nobody' if no worker takes from the route, or 'stale' if the token is not the current one
local hold = ARGV[2]
local token, list, id = holder(hold)
if token ~= ARGV[3] then return 'stale' end
local alive = tonumber(redis.call('ZSCORE', ROUTES, ARGV[4]) or '') or 0
if alive <= clock(ARGV[1]) then return 'nobody' end
redis.call('LPUSH', KEYS[1], id)
let_go(hold, list, id)
count(list, 'released')
return 'moved'
