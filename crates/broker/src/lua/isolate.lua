--- @include base
--- @flags allow-oom
-- Notes that a claimed job runs alone in its worker, if the token is the current one. reclaim.lua then counts the loss
-- of the worker against the job.
-- KEYS[1]  the job's hash
-- ARGV[1]  the time in ms; not used
-- ARGV[2]  the fencing token
-- Returns 1 if the job is noted, 0 if the token is not the current one
local has = read(KEYS[1], 'status', 'mw_token')
if has.status ~= 'started' or has.mw_token ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'mw_alone', ARGV[2])
return 1
