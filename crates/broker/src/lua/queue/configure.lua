--- @include complete/ending, queue/update_settings, queue/wake_scheduler
--- @flags allow-oom
-- Changes single settings of a queue, and applies them to what is under way: running jobs take slots of new limits, and
-- the backlogs of concurrency keys are checked at once. Further calls go on with both scans.
-- KEYS       none
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the queue without its priority
-- ARGV[3]    the number of changes
-- ARGV[4..]  per change: name, value ('' removes the setting; `weight KEY`: the weight of a key); then for the scans of
--            LEASES and of BACKLOG_INDEX: from which score on ('-inf' at first, '' when complete), how many members of that
--            score to skip
-- Returns [1]  the number of jobs that took a slot
--         [2]  the number of keys whose backlog is to be checked
--         [3]  LEASES: the score and the skip of the next call, in [3] and [4]
--         [5]  BACKLOG_INDEX: the same, in [5] and [6]
local PAGE = 500
local now, base, n = clock(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local seated, freed = 0, 0

-- Visits a page of a scan by score. Returns the score and the skip of the next page.
local function scan_members(name, a, act)
  local from, skip = ARGV[a], tonumber(ARGV[a + 1])
  if from == '' then return '', 0 end
  local found = redis.call('ZRANGEBYSCORE', name, from, '+inf', 'WITHSCORES', 'LIMIT', skip, PAGE)
  local last, same = found[#found], 0
  for i = 1, #found, 2 do
    local moved = act(found[i])
    if found[i + 1] == last and not moved then same = same + 1 end
  end
  if #found < 2 * PAGE then return '', 0 end
  return last, last == from and same + skip or same
end

-- A job that began before there was a limit takes its slot.
local function seat(id)
  local set, has = settings(base), read(JOB .. id, 'status', 'mw_queue', 'mw_key')
  if has.status ~= 'started' or not has.mw_queue or base_of(has.mw_queue) ~= base then return end
  local took = 0
  if set.concurrency then took = redis.call('ZADD', SLOTS .. base, 'NX', int(now), id) end
  if set.key_concurrency and has.mw_key then
    took = took + redis.call('ZADD', SLOTS .. member(base, has.mw_key), 'NX', int(now), id)
  end
  if took == 0 then return end
  redis.call('HSET', JOB .. id, 'mw_slot', base, 'mw_with', '1')
  seated = seated + 1
end

-- Lets the backlog of a key be checked at once.
local function hasten(name)
  local queue = string.match(name, '^(%S+) ')
  if not queue or base_of(queue) ~= base then return false end
  freed = freed + 1
  return redis.call('ZADD', BACKLOG_INDEX, 'LT', 'CH', int(now), name) == 1
end

if n > 0 then change(base, 4, n) end
local set, a = settings(base), 4 + 2 * n
local leases, over = '', 0
if set and (set.concurrency or set.key_concurrency) then leases, over = scan_members(LEASES, a, seat) end
local held, above = scan_members(BACKLOG_INDEX, a + 2, hasten)
if freed > 0 then wake() end
return respond({seated, freed, leases, over, held, above})
