--- @include complete/ending, prerequisites
--- @flags allow-oom
-- Notifies dependents of ended jobs that the script which ended a job left over. Dependents of a job that was retried
-- meanwhile wait on.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most jobs and dependents in one call
-- Returns [1]  the number of jobs and dependents visited
--         [2]  1 if more are left
local now, most, visited = clock(ARGV[1]), tonumber(ARGV[2]), 0
while visited < most do
  local id = redis.call('LPOP', UNRESOLVED)
  if not id then return respond({visited, 0}) end
  -- A blank before the id: the job finished, also if its record is deleted.
  local gone = string.match(id, '^ (.+)$')
  id = gone or id
  local status, other = status_of(id)
  if not other then status = status or (gone and 'finished' or 'error') end -- else check_orphans.lua tells them later
  visited = visited + 1
  if final(status) then visited = visited + notify_dependents(id, status == 'finished', now, most - visited + 1) end
end
return respond({visited, redis.call('EXISTS', UNRESOLVED)})
