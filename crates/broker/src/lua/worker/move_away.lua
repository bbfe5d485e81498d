--- @flags allow-oom
-- Moves keys away whose value has another type than Meshwork gives them. What a missing key held is found again.
-- KEYS[1..]  per key: the key, its new name
-- ARGV[1..]  per key: the types that it may have, with a blank before and after each
-- Returns the keys that were moved
local moved = {}
for k = 1, #KEYS, 2 do
  local kind = redis.call('TYPE', KEYS[k]).ok
  if not string.find(ARGV[(k + 1) / 2], ' ' .. kind .. ' ', 1, true) then
    -- A missing key stays missing. A user without the right leaves the key where it is.
    local answer = redis.pcall('RENAME', KEYS[k], KEYS[k + 1])
    if not answer.err then moved[#moved + 1] = KEYS[k] end
  end
end
return moved
