--- @include enter_database
-- Draws the next number of a kind of object. Numbers in use are skipped.
-- KEYS[1]  the counter
-- ARGV[1]  the database ('' for that of the connection)
-- ARGV[2]  the prefix of the keys of such objects
-- Returns the number; 0 if none is left; -1 after 1,000 numbers in use: repeat the call
local MOST = 4294967295
local keys = enter_database(ARGV[1])
for _ = 1, 1000 do
  local drawn = tonumber(redis.call('GET', keys[1]) or 0)
  if not drawn then return redis.error_reply('WRONGTYPE ' .. keys[1] .. ' holds no number') end
  if drawn >= MOST then return 0 end
  local id = redis.call('INCR', keys[1])
  if redis.call('EXISTS', ARGV[2] .. string.format('%.0f', id)) == 0 then return id end
end
return -1
