--- @include dependencies/batch_scan
--- @flags allow-oom
-- Cancels a batch: ends its callbacks, and cancels its jobs page by page, one page in each call. Running jobs are
-- cancelled by their workers. sweep_batches.lua goes on if the caller does not.
-- KEYS[1]  the batch's hash
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the batch's id
-- ARGV[4]  the reason
-- ARGV[5]  most jobs visited in one call
-- Returns 'cancelled'  every job was visited
--         'going on'   more jobs are left to visit
--         'ended'      the batch had ended before
--         'missing'    there is no such batch
local key, now, who, batch, reason = KEYS[1], clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local tools = batches()
local has = tools.state(batch)
if not has.total then return respond('missing') end
if has.ended then return respond('ended') end
if not has.cancelled then
  has.cancelled, has.scan = reason, '0'
  redis.call('HSET', key, 'cancelled', reason, 'sealed', int(now))
  event('batch ' .. batch, 'cancel', who, reason)
  for _, kind in ipairs({'done', 'success', 'failure'}) do
    tools.drop(batch, has, kind, 'batch ' .. batch .. ' was cancelled', now)
  end
end
local _, all = scan_members(batch, has, now, tonumber(ARGV[5]), who)
redis.call('ZADD', BATCHES_OPEN, int(now), batch)
return respond(all and 'cancelled' or 'going on')
