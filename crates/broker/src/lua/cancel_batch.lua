--- @include batch_scan
--- @flags allow-oom
-- Cancels a batch: its callbacks end, and so do its jobs, a part of them in each call. Those that run are told
-- through their workers. Where nobody asks again, tend goes on.
-- KEYS    1: the batch's hash
-- ARGV    1: now
--         2: who
--         3: id
--         4: reason
--         5: most jobs met in one call
-- Returns 'cancelled', 'going on' if there are more jobs to stop, 'ended' if it had ended already, or 'missing'
local now, batch = clock(ARGV[1]), ARGV[3]
local tools = batches()
local has = tools.state(batch)
if not has.total then return respond('missing') end
if has.ended then return respond('ended') end
if not has.cancelled then
  has.cancelled, has.scan = ARGV[4], '0'
  redis.call('HSET', KEYS[1], 'cancelled', ARGV[4], 'sealed', int(now))
  event('batch ' .. batch, 'cancel', ARGV[2], ARGV[4])
  for _, kind in ipairs({'done', 'success', 'failure'}) do
    tools.drop(batch, has, kind, 'batch ' .. batch .. ' was cancelled', now)
  end
end
local _, all = scan_members(batch, has, now, tonumber(ARGV[5]), ARGV[2])
redis.call('ZADD', BATCHES_OPEN, int(now), batch)
return respond(all and 'cancelled' or 'going on')
