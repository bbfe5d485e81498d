--- @include protocols/bananas
--- @flags allow-oom
-- Moves a claimed job of Bananas from an unrouted list to the list of its route, and ends its lease. The job stays if
-- no worker of Meshwork claims from the route, since Bananas' own workers may not read that list.
-- KEYS[1]  the list of the route
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the lease id
-- ARGV[3]  the fencing token
-- ARGV[4]  the route
-- Returns 'moved', 'nobody' if no worker claims from the route, or 'stale' if the token is not the current one
local lease_id = ARGV[2]
local token, list, id = lease_of(lease_id)
if token ~= ARGV[3] then return 'stale' end
local alive = tonumber(redis.call('ZSCORE', ROUTES, ARGV[4]) or '') or 0
if alive <= clock(ARGV[1]) then return 'nobody' end
redis.call('LPUSH', KEYS[1], id)
end_lease(lease_id, list, id)
count(list, 'released')
return 'moved'
