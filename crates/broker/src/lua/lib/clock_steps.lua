--- @include base
-- Steps back of the server's clock.

-- Stores the latest time of the clock. Returns how often the clock went back. A key of another type is left alone.
local function note_clock()
  local known = try('GET', CLOCK) or ''
  local odd = type(known) ~= 'string'
  if odd then known = '' end
  if not odd and shown > (tonumber(string.match(known, '^%d+') or '') or 0) then
    redis.call('SET', CLOCK, int(shown) .. (string.match(known, '^%d+( .*)$') or ''))
  end
  return string.match(known, ' (%d+)$') or '0'
end
