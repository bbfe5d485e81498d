--- @include base
-- Start timeouts: returns the error of a job that no worker began in time, nothing for another. One that lost a worker has begun.
local function too_late(has, now)
  local by, ms = string.match(has.mw_start_by or '', '^(%d+) (%d+)$')
  if not by or now < tonumber(by) or has.mw_lost then return end
  for unit, n in string.gmatch('d 86400000 h 3600000 min 60000 s 1000 ms 1', '(%a+) (%d+)') do
    if ms % n == 0 then return 'timeout: no worker began it within ' .. int(ms / n) .. ' ' .. unit end
  end
end
