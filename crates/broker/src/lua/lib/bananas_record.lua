--- @include base
-- Records of Bananas' jobs: what stands under a key, and those whose times are still to be written. No script reads
-- what is in a record.

-- What stands under a key: 'there' and the text, 'missing', or 'odd' if it is of another kind.
local function look_at(key)
  local record = redis.pcall('GET', key)
  if not record then return 'missing', '' end
  if record.err then return 'odd', '' end
  return 'there', record
end

-- The same as a digest, which is what the caller knows of the record that it changes.
local function digest(state, record)
  return state == 'there' and redis.sha1hex(record) or state
end

-- A record from ARGV[a] on: the number of times in it, text, and per time what to add in ms and the text after
-- it; none if that number is -1. Returns it, and the place after it.
local function drafted(a, now)
  local times = tonumber(ARGV[a])
  if times < 0 then return nil, a + 1 end
  local text = {ARGV[a + 1]}
  for i = a + 2, a + 2 * times, 2 do
    text[#text + 1] = string.sub(stamp(now + tonumber(ARGV[i])), 1, 23) .. '000Z'
    text[#text + 1] = ARGV[i + 1]
  end
  return table.concat(text), a + 2 + 2 * times
end
