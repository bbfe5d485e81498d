--- @include bananas
-- Puts a dead letter of Bananas back onto the list of its route, where it has all its runs again.
-- KEYS    1: the list
-- ARGV    1: now
--         2: id
--         3: digest of the record that was changed
--         4: the record with gaps for times
-- Returns 'queued', 'missing' if the id is no dead letter, or 'changed'; and what stands under the job's key if it was
--         changed meanwhile
local now, id = clock(ARGV[1]), ARGV[2]
if not redis.call('LPOS', DEAD, id) then return {'missing', '', ''} end
local state, record = look(id)
if digest(state, record) ~= ARGV[3] then return {'changed', state, record} end
-- Should it be of another kind, the call ends here.
redis.call('LPUSH', KEYS[1], id)
redis.call('SET', JOB .. id, (drafted(4, now)))
redis.call('LREM', DEAD, 0, id)
-- Who waits for it would take the failure for its end.
redis.call('DEL', RESULT .. id)
return {'queued', '', ''}
