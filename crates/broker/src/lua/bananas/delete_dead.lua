--- @include protocols/bananas
--- @flags allow-oom
-- Deletes a dead letter of Bananas with its result and its record. Both stay if the job runs again.
-- KEYS     none
-- ARGV[1]  the time in ms; not used
-- ARGV[2]  the job's id
-- ARGV[3]  digest of the record ('' if the job runs again)
-- Returns [1]  'deleted'; 'missing' if the id is no dead letter; 'changed' if the record was changed
--         [2]  state of the record if it was changed, else ''
--         [3]  the record if it was changed, else ''
local id = ARGV[2]
if not redis.call('LPOS', DEAD, id) then return {'missing', '', ''} end
local state, record = look(id)
if ARGV[3] ~= '' then
  if digest(state, record) ~= ARGV[3] then return {'changed', state, record} end
  redis.call('DEL', JOB .. id, RESULT .. id)
end
redis.call('LREM', DEAD, 0, id)
return {'deleted', '', ''}
