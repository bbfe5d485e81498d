--- @include complete/ending, claim/fair_refill
--- @flags allow-oom
-- Moves delayed jobs whose time has come to the end of their queues, and jobs of keys with a free slot.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most jobs and keys in one call
-- Returns [1]  the number of jobs and keys visited
--         [2]  in how many ms the next job or schedule is due, -1 for none
local now, most = clock(ARGV[1]), tonumber(ARGV[2])
local due = redis.call('ZRANGEBYSCORE', DELAYED, '-inf', int(now), 'LIMIT', 0, most)
for _, id in ipairs(due) do
  local key = JOB .. id
  local has, other = record(key)
  if other then put_off(DELAYED, id, now) else redis.call('ZREM', DELAYED, id) end
  if is_dispatched(has.status) and has.mw_queue then
    redis.call('HSET', key, updated(now)) -- since when it is ready
    deliver('LPUSH', id, key, has, has.mw_queue, now, true)
  end
end
local looked = #due
if looked < most then looked = looked + recheck(now, most - looked) end
return respond({looked, soonest(now)})
