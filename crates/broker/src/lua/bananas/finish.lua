-- Ends a job of Bananas with its result, if the token is the one in force: result, record and word in one step.
-- KEYS
-- ARGV    now, id, token, digest of the record that was changed, duration in ms, the result ('' for none), the
--         record with gaps for times
-- Returns 'finished', or 'stale' if the job is not this worker's any more, or 'changed' if its record is another one
--         now; then what it is and its text
local now, id = clock(ARGV[1]), ARGV[2]
local token, list = holder(id)
if token ~= ARGV[3] then return {'stale', '', ''} end
local state, record = look(id)
if digest(state, record) ~= ARGV[4] then return {'changed', state, record} end
if ARGV[6] == '' then tell(id, now, ARGV[5]) else tell(id, now, ARGV[5], 'result', ARGV[6]) end
let_go(id, list)
redis.call('DEL', LOST .. id)
local ended = drafted(7, now)
if ended then redis.call('SET', JOB .. id, ended, 'PX', COMPLETED_FOR) end
count(list, 'finished')
count(list, 'run_ms', ARGV[5])
return {'finished', '', ''}
