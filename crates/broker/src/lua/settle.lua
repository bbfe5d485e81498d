-- Tells jobs that wait for one that has ended, where the script that ended it left some over.
-- KEYS
-- ARGV    now, most told in one call
-- Returns how many were told, 1 if there are more
local now, most, told = clock(ARGV[1]), tonumber(ARGV[2]), 0
while told < most do
  local id = redis.call('LPOP', SETTLE)
  if not id then return {told, 0} end
  told = told + 1 + advance(id, read(JOB .. id, 'status').status == 'finished', now, most - told)
end
return {told, redis.call('EXISTS', SETTLE)}
