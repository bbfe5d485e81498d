--- @include complete/ending
--- @flags allow-oom
-- Seals a batch: it takes no more jobs from outside, and ends with the last job that it has.
-- KEYS[1]  the batch's hash
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the caller, for the event
-- ARGV[3]  the batch's id
-- Returns 'sealed'     the batch takes no more jobs
--         'ended'      the batch had ended before
--         'cancelled'  the batch is cancelled
--         'missing'    there is no such batch
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
