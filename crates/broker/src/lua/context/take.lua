--- @include base, enter_database
-- Leases messages that are to be sent: those whose lease has ended first, then new ones, until each is settled.
-- KEYS[1]  msg_out
-- KEYS[2]  msg_out_coordinator
-- KEYS[3]  the leases
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  the database ('' for that of the connection)
-- ARGV[3]  the lease in ms
-- ARGV[4]  most messages
-- Returns the keys of the messages
local now, most = clock(ARGV[1]), tonumber(ARGV[4])
local keys = enter_database(ARGV[2])
local taken = redis.call('ZRANGEBYSCORE', keys[3], '-inf', int(now), 'LIMIT', '0', ARGV[4])
while #taken < most do
  local key = redis.call('LMOVE', keys[1], keys[2], 'RIGHT', 'LEFT')
  if not key then break end
  taken[#taken + 1] = key
end
for _, key in ipairs(taken) do redis.call('ZADD', keys[3], int(now + tonumber(ARGV[3])), key) end
return taken
