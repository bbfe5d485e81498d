--- @include base
-- Start timeouts: a job that no worker began in time ends in error.

-- Returns the error of a job whose time to begin is over, nothing for another job. A job that lost a worker has begun.
local function too_late(has, now)
  local by, ms = string.match(has.mw_start_by or '', '^(%d+) (%d+)$')
  if not by or now < tonumber(by) or has.mw_lost then return end
  return 'timeout: no worker began it within ' .. (ms % 1000 == 0 and int(ms / 1000) .. ' s' or ms .. ' ms')
end
