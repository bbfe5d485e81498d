--- @include protocols/bananas
--- @flags allow-oom
-- Releases a claimed job of Bananas: puts it into its list without counting the run, if the token is the current one.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the lease id
-- ARGV[3]    the fencing token
-- ARGV[4]    'next' for the front of the list, 'last' for its end, 'nowhere' for a job that is completed
-- ARGV[5]    digest of its record
-- ARGV[6..]  the completed record as a template (`drafted`), none if the record is complete
-- Returns 1, or 0 if the token is not the current one
local hold = ARGV[2]
local token, list, id = lease_of(hold)
if token ~= ARGV[3] then return 0 end
if ARGV[4] ~= 'nowhere' then redis.call(ARGV[4] == 'next' and 'RPUSH' or 'LPUSH', list, id) end
local done = drafted(6, clock(ARGV[1]))
if done and digest(look(id)) == ARGV[5] then redis.call('SET', JOB .. id, done, 'PX', COMPLETED_FOR) end
end_lease(hold, list, id)
count(list, 'released')
return 1
