--- @include telemetry
-- Where else the id of a job stands: on an old list while its type migrates.

-- The old list of a job while its type migrates, after how many ms one looks again, the phase, and whether it is
-- a list of one worker.
local moving = {}
local function old_list(script_type, worker_id)
  local name = 'migration:' .. (script_type or '')
  if moving[name] == nil then
    local low = string.lower(name) -- old clients write it as they like
    local set = read(CONFIG, name, low)
    moving[name] = set[name] or set[low] or ''
  end
  local phase, list, after = string.match(moving[name], '^(%S+) (%S+) (%d+)')
  if not phase then return nil, WATCH_AFTER end
  after = math.min(tonumber(after), LONGEST_AGE)
  local from, to = string.find(list, '{worker_id}', 1, true)
  if from and (worker_id or '') == '' then return nil, after, phase end
  if from then list = string.sub(list, 1, from - 1) .. worker_id .. string.sub(list, to + 1) end
  return list, after, phase, from
end

-- During a migration, pushes the id to the old list of its type too. The old list is then the lock: who
-- takes the id off it has the job. Where any worker of the type takes from that list, a job for a group or
-- an instance is not for it.
local function dual_write(id, key, queue, script_type, worker_id, now)
  local list, after, phase, named = old_list(script_type, worker_id)
  local own = ':' .. (worker_id or '')
  local pinned = string.find(queue or '', ':group:', 1, true)
  if pinned and not named and (own == ':' or string.sub(list or '', -#own) ~= own) then return end
  if not list or list == queue or phase == 'closing' or not pushed('LPUSH', list, id) then return end
  redis.call('HSET', key, 'mw_lock', list, 'mw_queue', queue)
  redis.pcall('ZADD', WATCH, 'LT', int(now + after), id)
end
