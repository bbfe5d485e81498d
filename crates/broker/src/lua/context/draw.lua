-- Draws the next number of a kind of object. Numbers that others have chosen are stepped over.
-- KEYS    1: the counter
-- ARGV    1: the database ('' for the one of the connection)
--         2: what the keys of such objects begin with
-- Returns the number; 0 when there is none left, -1 when 1,000 in a row were taken: say it again then
local MOST = 4294967295
if ARGV[1] ~= '' then redis.call('SELECT', ARGV[1]) end
for _ = 1, 1000 do
  if tonumber(redis.call('GET', KEYS[1]) or 0) >= MOST then return 0 end
  local id = redis.call('INCR', KEYS[1])
  if redis.call('EXISTS', ARGV[2] .. string.format('%.0f', id)) == 0 then return id end
end
return -1
