--- @include base
-- The rule of the rescue. Any worker may lead, so workers that rescue foreign jobs note theirs, for as long as they live.

-- Returns the age in ms after which an orphan is pushed again, and true if foreign ones are too: by the caller's rule and
-- the noted one.
local function rescue_rule(age, rescues, now)
  local noted = try('HMGET', WALK, 'rescue', 'rescue_until')
  local others = not noted.err and tonumber(noted[1] or '')
  if others and (tonumber(noted[2] or '') or 0) > now then age, rescues = math.min(age, others), true end
  return math.min(age, LONGEST_AGE), rescues
end
