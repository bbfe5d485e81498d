--- @include ending, prerequisites
--- @flags allow-oom
-- Tells jobs that wait for one that has ended, where the script that ended it left some over. Those that
-- wait for one that somebody has set going again meanwhile wait on.
-- KEYS
-- ARGV    1: now
--         2: most told in one call
-- Returns how many were told, 1 if there are more
local now, most, told = clock(ARGV[1]), tonumber(ARGV[2]), 0
while told < most do
  local id = redis.call('LPOP', SETTLE)
  if not id then return respond({told, 0}) end
  -- A blank: it finished, which the record says no more if it is gone.
  local gone = string.match(id, '^ (.+)$')
  id = gone or id
  local status = status_of(id) or (gone and 'finished' or 'error')
  told = told + 1
  if final(status) then told = told + notify_dependents(id, status == 'finished', now, most - told + 1) end
end
return respond({told, redis.call('EXISTS', SETTLE)})
