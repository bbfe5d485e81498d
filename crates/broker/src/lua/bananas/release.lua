-- Hands a job of Bananas back to the list that it came from, at no cost, if the token is the one in force.
-- KEYS
-- ARGV    now, id, token, 'next' or 'last' for its place there, 'nowhere' if its id stands there no more
-- Returns 1, or 0 if the job is not this worker's any more
local id = ARGV[2]
local token, list = holder(id)
if token ~= ARGV[3] then return 0 end
if ARGV[4] ~= 'nowhere' then redis.call(ARGV[4] == 'next' and 'RPUSH' or 'LPUSH', list, id) end
let_go(id)
return 1
