--- @include protocols/bananas
--- @flags allow-oom
-- Records that a run of a job of Bananas failed, if the token is the current one: the job is retried after a pause, or
-- becomes a dead letter. Its callers are notified in either case, as Bananas' workers do.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the lease id
-- ARGV[3]    the fencing token
-- ARGV[4]    digest of the record that was changed
-- ARGV[5]    the duration of the run in ms
-- ARGV[6]    the error
-- ARGV[7]    the pause in ms (-1 for a dead letter)
-- ARGV[8..]  the record as a template (`drafted`)
-- Returns [1]  'failed'; 'stale' if the token is not the current one; 'changed' if the record was changed; 'dead' for a
--              job without an id whose record is another job's by now
--         [2]  state of the record if it was changed, else ''
--         [3]  the record if it was changed, else ''
local now, hold = clock(ARGV[1]), ARGV[2]
local token, list, id = lease_of(hold)
if token ~= ARGV[3] then return {'stale', '', ''} end
local state, record = look(id)
local pause, failed, outcome = tonumber(ARGV[7]), (drafted(8, now)), 'failed'
if digest(state, record) ~= ARGV[4] then
  if id ~= '' then return {'changed', state, record} end
  pause, failed, outcome = -1, nil, 'dead'
end
may_tell(id)
if pause >= 0 then
  -- Ends the call if the key is of another kind: the job returns when its lease ends.
  redis.call('ZADD', SCHEDULED, string.format('%.3f', (now + pause) / 1000), id)
  redis.call('SET', JOB .. id, failed)
  count(list, 'retried')
else
  bury(id, failed, list)
  count(list, 'failed')
end
tell(id, now, ARGV[5], 'error', ARGV[6])
end_lease(hold, list, id)
count(list, 'run_ms', ARGV[5])
return {outcome, '', ''}
