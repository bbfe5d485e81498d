--- @include bananas
--- @flags allow-oom
-- Puts a job that some worker of Bananas left among those that run back into a list, as the next one there, if it is
-- still as it was found.
-- KEYS    1: the list
-- ARGV    1: now
--         2: id
--         3: age in ms
-- Returns 1, or 0 if it is not there any more, or ours
local now, id = clock(ARGV[1]), ARGV[2]
local since = tonumber(redis.call('ZSCORE', SEEN, id) or '')
if not since or since + tonumber(ARGV[3]) > now or redis.call('HEXISTS', HELD, id) == 1 then return 0 end
redis.call('LLEN', KEYS[1]) -- should it be no list, the job stays where it is
redis.call('ZREM', SEEN, id)
if redis.call('LREM', PROCESSING, -1, id) == 0 then return 0 end
redis.call('RPUSH', KEYS[1], id)
return 1
