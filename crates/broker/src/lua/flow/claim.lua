--- @include base
--- @flags allow-oom
-- Claims the flow that is due first, under a lease and with a token. Flows whose record is gone are removed; one
-- that cannot be read is tried again later.
-- KEYS  none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the lease in ms
-- ARGV[3]  the token
-- Returns the flow's number, or '' and the ms until the next is due (-1: there is none)
local MOST = 100 -- flows that are forgotten or put off in one call
local UNREADABLE = 60000 -- ms until a flow is tried again whose record cannot be read
local now = clock(ARGV[1])
for _ = 1, MOST do
  local due = redis.call('ZRANGE', FLOWS_DUE, 0, 0, 'WITHSCORES')
  if not due[1] then return {'', -1} end
  if tonumber(due[2]) > now then return {'', int(tonumber(due[2]) - now)} end
  local record = FLOW .. due[1]
  if exists(record) or try('HEXISTS', record, 'mw_mark') == 1 then
    redis.call('HSET', record, 'mw_lease', ARGV[3])
    redis.call('ZADD', FLOWS_DUE, int(now + tonumber(ARGV[2])), due[1])
    return {due[1], 0}
  end
  if redis.call('EXISTS', record) == 0 then redis.call('ZREM', FLOWS_DUE, due[1])
  else redis.call('ZADD', FLOWS_DUE, int(now + UNREADABLE), due[1]) end
end
return {'', 0}
