-- Changes of the settings of a queue or a route of Bananas.

-- Applies the n changes from ARGV[a] on, each a name and a value ('' removes the setting; `weight KEY`: the weight of a
-- key). Other settings stay.
local function change(base, a, n)
  local order, value_of = {}, {}
  local text = redis.call('HGET', CONFIG, 'queue:' .. base) or ''
  local function set(name, value)
    if not value_of[name] then order[#order + 1] = name end
    value_of[name] = value
  end
  for name, value in string.gmatch(text, '(%S+)=(%S+)') do set(name, value) end
  for _ = 1, n do
    local name, value = ARGV[a], ARGV[a + 1]
    local key = string.match(name, '^weight (.*)$')
    if not key then set(name, value)
    elseif value == '' then redis.call('HDEL', CONFIG, 'weight:' .. base .. ' ' .. key)
    else redis.call('HSET', CONFIG, 'weight:' .. base .. ' ' .. key, value) end
    if name == 'rate' then redis.call('DEL', RATES .. base) end -- a new rate begins anew
    a = a + 2
  end
  local kept = {}
  for _, name in ipairs(order) do
    if value_of[name] ~= '' then kept[#kept + 1] = name .. '=' .. value_of[name] end
  end
  if #kept > 0 then redis.call('HSET', CONFIG, 'queue:' .. base, table.concat(kept, ' '))
  else redis.call('HDEL', CONFIG, 'queue:' .. base) end
end
