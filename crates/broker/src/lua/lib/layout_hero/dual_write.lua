--- @include telemetry
-- Dual writes: the legacy list of a job while its type migrates.

-- Returns the legacy list of a job while its type migrates, the age in ms for its next check, the phase, and true if it
-- is the list of one worker.
local moving = {}
local function old_list(script_type, worker_id)
  local name = 'migration:' .. (script_type or '')
  if moving[name] == nil then
    local low = string.lower(name) -- legacy clients write it in any case
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

-- Pushes the id to the legacy list of its type too during a migration. That list is the lock then: the worker that
-- removes the id from it has the job. A list for all workers of the type gets no job of a group or an instance.
local function dual_write(id, key, queue, script_type, worker_id, now)
  local list, after, phase, named = old_list(script_type, worker_id)
  local own = ':' .. (worker_id or '')
  local pinned = string.find(queue or '', ':group:', 1, true)
  if pinned and not named and (own == ':' or string.sub(list or '', -#own) ~= own) then return end
  if not list or list == queue or phase == 'closing' or not pushed('LPUSH', list, id) then return end
  redis.call('HSET', key, 'mw_lock', list, 'mw_queue', queue)
  try('ZADD', WATCHED, 'LT', int(now + after), id)
end
