--- @include audit, flow_end
--- @flags allow-oom
-- Requests that a flow stops. The next step ends its jobs and starts compensations.
-- KEYS[1]  the flow's record
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the flow's number
-- ARGV[4]  1 for no compensation
-- Returns 'stopping'
--         'ended'    it had ended before
--         'missing'  there is no such flow
local now, status = clock(ARGV[1]), read(KEYS[1], 'status').status
if not status then return respond('missing') end
if final(status) then return respond('ended') end
if redis.call('HSETNX', KEYS[1], 'mw_stop', 'cancelled') == 1 then
  if ARGV[4] == '1' then redis.call('HSET', KEYS[1], 'mw_keep', '1') end
  event('flow ' .. ARGV[3], 'stop', ARGV[2])
  note_audit(ARGV[2], 'cancel', KEYS[1], '', now)
  wake_flow(ARGV[3], now)
end
return respond('stopping')
