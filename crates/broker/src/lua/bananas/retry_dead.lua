--- @include protocols/bananas
-- Retries a dead letter of Bananas: puts it into the list of its route as if it had never run.
-- KEYS[1]    the list
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the job's id
-- ARGV[3]    digest of the record that was changed
-- ARGV[4..]  the record as a template (`drafted`)
-- Returns [1]  'queued'; 'missing' if the id is no dead letter; 'changed' if the record was changed
--         [2]  state of the record if it was changed, else ''
--         [3]  the record if it was changed, else ''
local now, id = clock(ARGV[1]), ARGV[2]
if not redis.call('LPOS', DEAD, id) then return {'missing', '', ''} end
local state, record = look(id)
if digest(state, record) ~= ARGV[3] then return {'changed', state, record} end
-- Ends the call if the key is no list.
redis.call('LPUSH', KEYS[1], id)
redis.call('SET', JOB .. id, (drafted(4, now)))
redis.call('LREM', DEAD, 0, id)
-- A caller would take the old failure for the end of the job.
redis.call('DEL', RESULT .. id)
return {'queued', '', ''}
