--- @include ending
--- @flags allow-oom
-- Seals a batch: no more jobs come from outside, so it ends with the last of those that it has.
-- KEYS    1: the batch's hash
-- ARGV    1: now
--         2: who
--         3: id
-- Returns 'sealed', 'ended' if it had ended already, 'cancelled', or 'missing'
local now, batch = clock(ARGV[1]), ARGV[3]
local has = batches().state(batch)
if not has.total then return respond('missing') end
if has.cancelled then return respond('cancelled') end
if has.ended then return respond('ended') end
if not has.sealed then
  redis.call('HSET', KEYS[1], 'sealed', int(now))
  event('batch ' .. batch, 'seal', ARGV[2])
end
visit_batch(batch, now)
return respond('sealed')
