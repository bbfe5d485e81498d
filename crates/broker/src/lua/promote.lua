-- Puts jobs whose delay is over at the end of their queues.
-- KEYS
-- ARGV    now, most in one call
-- Returns how many, and in how many ms the next one is due (-1: there is none)
local now = clock(ARGV[1])
local due = redis.call('ZRANGEBYSCORE', DELAYED, '-inf', whole(now), 'LIMIT', 0, ARGV[2])
for _, id in ipairs(due) do
  local key = JOB .. id
  redis.call('ZREM', DELAYED, id)
  local has = read(key, 'status', 'mw_queue', 'mw_reply', 'mw_legacy')
  if has.status == 'dispatched' and has.mw_queue then
    deliver('LPUSH', id, key, has, has.mw_queue, now, true)
  end
end
local next = redis.call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')
return {#due, next[2] and whole(math.max(0, tonumber(next[2]) - now)) or '-1'}
