--- @include base
-- Records of Bananas' jobs: their states, digests and templates. No script reads the JSON of a record.

-- Returns the state of a record and its text: 'there', 'missing', or 'odd' if the key is no string.
local function look_at(key)
  local record = try('GET', key)
  if not record then return 'missing', '' end
  if record.err then return 'odd', '' end
  return 'there', record
end

-- Returns the digest of a record, by which a caller names the record that it changes; its state if there is none.
local function digest(state, record)
  return state == 'there' and redis.sha1hex(record) or state
end

-- Fills in the template of a record from ARGV[a] on: the number of times in it, text, per time the ms to add to now and
-- the text after it; number -1 for no record. Returns the record, and the index after the template.
local function drafted(a, now)
  local times = tonumber(ARGV[a])
  if times < 0 then return nil, a + 1 end
  local text = {ARGV[a + 1]}
  for i = a + 2, a + 2 * times, 2 do
    text[#text + 1] = string.sub(iso(now + tonumber(ARGV[i])), 1, 23) .. '000Z'
    text[#text + 1] = ARGV[i + 1]
  end
  return table.concat(text), a + 2 + 2 * times
end
