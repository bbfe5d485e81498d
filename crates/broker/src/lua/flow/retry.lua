--- @include audit, flow_end
--- @flags allow-oom
-- Runs jobs of an ended flow again. The next step gives them the new generation (lib/flow/flow_renew.lua).
-- KEYS[1]  the flow's record
-- KEYS[2]  the names of its jobs
-- KEYS[3]  the states of its jobs
-- KEYS[4]  its plan
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the flow's number
-- ARGV[4]  the jobs that run again, as JSON
-- ARGV[5]  the actor who asks for it
-- Returns 'retrying'
--         'unfinished'  it has not ended
--         'missing'     there is no such flow
local now, is = clock(ARGV[1]), read(KEYS[1], 'status', 'mw_ends', 'mw_retried_by')
if not is.status then return respond('missing') end
if not final(is.status) then return respond('unfinished') end
redis.call('HDEL', KEYS[1], 'result', 'error', 'mw_stop', 'mw_keep', 'mw_fault', 'mw_expires', 'mw_looked', 'mw_halted')
redis.call('HINCRBY', KEYS[1], 'mw_retries', 1)
redis.call('HSET', KEYS[1], 'status', 'started', 'result', '{}', 'mw_retry', ARGV[4],
  'mw_retried', is.mw_ends or '0', updated(now))
if not string.find(' ' .. (is.mw_retried_by or '') .. ' ', ' ' .. ARGV[5] .. ' ', 1, true) then
  redis.call('HSET', KEYS[1], 'mw_retried_by', (is.mw_retried_by and is.mw_retried_by .. ' ' or '') .. ARGV[5])
end
for _, key in ipairs({KEYS[1], KEYS[2], KEYS[3], KEYS[4]}) do redis.call('PERSIST', key) end
event('flow ' .. ARGV[3], 'retry', ARGV[2])
note_audit(ARGV[2], 'retry', KEYS[1], ARGV[4], now)
wake_flow(ARGV[3], now)
return respond('retrying')
