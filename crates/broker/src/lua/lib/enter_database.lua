-- Returns the keys of a call, after selecting the database of a context. An ACL checks declared keys in the database of
-- the connection. So a call for another database declares none: they stand at the end of ARGV, and their number last.
local function enter_database(database)
  if database == '' then return KEYS end
  redis.call('SELECT', database)
  local keys, last = {}, #ARGV
  for at = last - tonumber(ARGV[last]), last - 1 do keys[#keys + 1] = ARGV[at] end
  for at = last, last - #keys, -1 do ARGV[at] = nil end
  return keys
end
