--- @include bananas
--- @flags allow-oom
-- Hands a job of Bananas back to the list that it came from, at no cost, if the token is the one in force.
-- KEYS
-- ARGV    1: now
--         2: under what it is held
--         3: token
--         4: 'next' or 'last' for its place there, 'nowhere' if its id stands there no more since it is done
--         5: digest of its record
--         6: the record that says so with gaps for times, if that one does not
-- Returns 1, or 0 if the job is not this worker's any more
local hold = ARGV[2]
local token, list, id = holder(hold)
if token ~= ARGV[3] then return 0 end
if ARGV[4] ~= 'nowhere' then redis.call(ARGV[4] == 'next' and 'RPUSH' or 'LPUSH', list, id) end
local done = drafted(6, clock(ARGV[1]))
if done and digest(look(id)) == ARGV[5] then redis.call('SET', JOB .. id, done, 'PX', COMPLETED_FOR) end
let_go(hold, list, id)
count(list, 'released')
return 1
