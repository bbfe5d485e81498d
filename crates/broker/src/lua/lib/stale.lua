--- @include base
-- Suspected orphans, for people to see: in STALE each with how it is, `away` (on no list) or `started`, and from when on
-- it counts as stale; NEVER, before the first look. What is written there only helps.
local NEVER = 9e15

-- A job is seen to be like this, and counts as stale from `ms` on, or from when on it did before.
local function note_stale(id, how, ms)
  redis.pcall('ZREM', STALE, (how == 'away' and 'started ' or 'away ') .. id)
  redis.pcall('ZADD', STALE, 'LT', int(ms), how .. ' ' .. id)
end

-- Whether a job counts as stale.
local function is_stale(id, now)
  for _, how in ipairs({'away ', 'started '}) do
    local from = redis.pcall('ZSCORE', STALE, how .. id)
    if type(from) == 'string' and tonumber(from) <= now then return true end
  end
  return false
end
