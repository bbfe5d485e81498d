--- @include ending, fair_refill
--- @flags allow-oom
-- Puts jobs whose delay is over at the end of their queues, and those set aside for their key's sake where
-- something may have come free without a word.
-- KEYS
-- ARGV    1: now
--         2: most in one call
-- Returns how many were looked at, and in how many ms the next one is due (-1: there is none)
local now, most = clock(ARGV[1]), tonumber(ARGV[2])
local at = stamp(now)
local due = redis.call('ZRANGEBYSCORE', DELAYED, '-inf', int(now), 'LIMIT', 0, most)
for _, id in ipairs(due) do
  local key = JOB .. id
  redis.call('ZREM', DELAYED, id)
  local has = record(key)
  if is_dispatched(has.status) and has.mw_queue then
    redis.call('HSET', key, 'updated_at', at) -- since when it is ready
    deliver('LPUSH', id, key, has, has.mw_queue, now, true)
  end
end
local looked = #due
if looked < most then looked = looked + recheck(now, most - looked) end
return respond({looked, soonest(now)})
