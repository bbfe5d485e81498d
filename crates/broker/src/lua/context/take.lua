--- @include base
-- Takes messages that are to be sent: those whose lease is over first, then those that nobody has taken. Each has a lease
-- until it is settled.
-- KEYS    1: msg_out
--         2: msg_out_coordinator
--         3: the leases
-- ARGV    1: now
--         2: the database ('' for the one of the connection)
--         3: the lease in ms
--         4: the most messages
-- Returns the keys of the messages, as they stand on the list
local now, most = clock(ARGV[1]), tonumber(ARGV[4])
if ARGV[2] ~= '' then redis.call('SELECT', ARGV[2]) end
local taken = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', int(now), 'LIMIT', '0', ARGV[4])
while #taken < most do
  local key = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')
  if not key then break end
  taken[#taken + 1] = key
end
for _, key in ipairs(taken) do redis.call('ZADD', KEYS[3], int(now + tonumber(ARGV[3])), key) end
return taken
