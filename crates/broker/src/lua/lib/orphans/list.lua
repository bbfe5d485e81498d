--- @include base
-- Suspected orphans, as users see them: STALE has each with its state, `away` (in no list) or `started`, and the time
-- in ms from which it counts as stale (NEVER before the first check). Errors of its key are ignored.
local NEVER = 9e15

-- Notes the state of a job, which counts as stale from `ms` on, or from an earlier time that was noted.
local function note_stale(id, how, ms)
  try('ZREM', STALE, (how == 'away' and 'started ' or 'away ') .. id)
  try('ZADD', STALE, 'LT', int(ms), how .. ' ' .. id)
end

-- Returns true if a job counts as stale.
local function is_stale(id, now)
  for _, how in ipairs({'away ', 'started '}) do
    local from = try('ZSCORE', STALE, how .. id)
    if type(from) == 'string' and tonumber(from) <= now then return true end
  end
  return false
end
