--- @include protocols/bananas
--- @flags allow-oom
-- Puts an orphan of Bananas back at the front of its list, if it is still as orphans.lua found it.
-- KEYS[1]  the list
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the job's id
-- ARGV[3]  the age in ms from which a job counts as an orphan
-- Returns 1, or 0 if the job is gone from PROCESSING, too young, or leased by a worker of this system
local now, id = clock(ARGV[1]), ARGV[2]
local since = tonumber(redis.call('ZSCORE', SEEN, id) or '')
if not since or since + tonumber(ARGV[3]) > now or redis.call('HEXISTS', CLAIMS, id) == 1 then return 0 end
redis.call('LLEN', KEYS[1]) -- ends the call if the key is no list
redis.call('ZREM', SEEN, id)
if redis.call('LREM', PROCESSING, -1, id) == 0 then return 0 end
redis.call('RPUSH', KEYS[1], id)
return 1
