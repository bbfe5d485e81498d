--- @include bananas
--- @flags allow-oom
-- Reports that a run of a job of Bananas failed, if the token is the one in force: it waits for its next run, or it
-- becomes a dead letter. Those who wait for it are told in either case, as Bananas' workers do.
-- KEYS
-- ARGV    1: now
--         2: under what it is held
--         3: token
--         4: digest of the record that was changed
--         5: duration in ms
--         6: the error
--         7: the pause in ms (-1 if it is a dead letter now)
--         8: the record with gaps for times
-- Returns as finish does, with 'failed' for 'finished', or 'dead' for a job without an id that is a dead letter since its
--         record is another job's now
local now, hold = clock(ARGV[1]), ARGV[2]
local token, list, id = holder(hold)
if token ~= ARGV[3] then return {'stale', '', ''} end
local state, record = look(id)
local pause, failed, told = tonumber(ARGV[7]), (drafted(8, now)), 'failed'
if digest(state, record) ~= ARGV[4] then
  if id ~= '' then return {'changed', state, record} end
  pause, failed, told = -1, nil, 'dead'
end
if pause >= 0 then
  -- Should it be of another kind, the call ends here, and the job comes back with its lease.
  redis.call('ZADD', SCHEDULED, string.format('%.3f', (now + pause) / 1000), id)
  redis.call('SET', JOB .. id, failed)
  count(list, 'retried')
else
  bury(id, failed, list)
  count(list, 'failed')
end
tell(id, now, ARGV[5], 'error', ARGV[6])
let_go(hold, list, id)
count(list, 'run_ms', ARGV[5])
return {told, '', ''}
