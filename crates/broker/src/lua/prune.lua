--- @include telemetry, enqueue/drop_job
--- @flags allow-oom
-- Deletes ended jobs whose retention is over, and the oldest ones beyond the greatest number. Dead letters stay.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the retention in ms
-- ARGV[3]  the greatest number of ended jobs
-- ARGV[4]  most jobs visited in one call
-- Returns [1]  the number of jobs deleted
--         [2]  1 if more may be left
local most, forgotten = tonumber(ARGV[4]), 0
local now = clock(ARGV[1])
local old = int(now - tonumber(ARGV[2]))
local ids = redis.call('ZRANGEBYSCORE', ENDED, '-inf', old, 'LIMIT', 0, most)
local over = redis.call('ZCARD', ENDED) - tonumber(ARGV[3])
if #ids < most and over > #ids then ids = redis.call('ZRANGE', ENDED, 0, math.min(most, over) - 1) end
for _, id in ipairs(ids) do
  -- The job may have been retried by hand, and may be a dead letter since.
  local has, other = read(JOB .. id, 'status')
  if other then put_off(ENDED, id, now)
  elseif not final(has.status) or redis.call('ZSCORE', DEAD, id) then
    redis.call('ZREM', ENDED, id)
  else
    drop_job(id)
    forgotten = forgotten + 1
  end
end
return respond({forgotten, #ids >= most and 1 or 0})
