--- @include telemetry, drop_job
--- @flags allow-oom
-- Forgets jobs that ended long ago, and the oldest where there are too many. Dead letters stay.
-- KEYS
-- ARGV    1: now
--         2: how long they are kept in ms
--         3: how many are kept
--         4: most looked at in one call
-- Returns how many were forgotten, 1 if there are more to forget
local most, forgotten = tonumber(ARGV[4]), 0
local old = int(clock(ARGV[1]) - tonumber(ARGV[2]))
local ids = redis.call('ZRANGEBYSCORE', ENDED, '-inf', old, 'LIMIT', 0, most)
local over = redis.call('ZCARD', ENDED) - tonumber(ARGV[3])
if #ids < most and over > #ids then ids = redis.call('ZRANGE', ENDED, 0, math.min(most, over) - 1) end
for _, id in ipairs(ids) do
  -- Somebody may have set it going again by hand, and it may have become a dead letter then.
  if not final(read(JOB .. id, 'status').status) or redis.call('ZSCORE', DEAD, id) then
    redis.call('ZREM', ENDED, id)
  else
    drop_job(id)
    forgotten = forgotten + 1
  end
end
return respond({forgotten, #ids >= most and 1 or 0})
