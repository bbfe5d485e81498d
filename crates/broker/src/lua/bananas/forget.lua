--- @include bananas
--- @flags allow-oom
-- Forgets a dead letter of Bananas, with its result and, unless it runs again, its record.
-- KEYS
-- ARGV    1: now
--         2: id
--         3: digest of the record that goes with it; '' if that stays, since the job runs again
-- Returns 'deleted', 'missing' if the id is no dead letter, or 'changed'; and what stands under the job's key if it was
--         changed meanwhile
local id = ARGV[2]
if not redis.call('LPOS', DEAD, id) then return {'missing', '', ''} end
local state, record = look(id)
if ARGV[3] ~= '' then
  if digest(state, record) ~= ARGV[3] then return {'changed', state, record} end
  redis.call('DEL', JOB .. id, RESULT .. id)
end
redis.call('LREM', DEAD, 0, id)
return {'deleted', '', ''}
