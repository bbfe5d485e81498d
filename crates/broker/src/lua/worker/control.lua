--- @include complete/ending, claim/fair_refill, queue/cancel_waiting, element, clock_steps
--- @flags allow-oom
-- Gives a worker, once a second: the jobs to cancel, the leadership for maintenance and what there is to do for the
-- leader, the migrations of its types.
-- Waiting jobs are cancelled here. Requests about ended or missing jobs are dropped at once, others after STOP_TTL.
-- KEYS[1..]  the control and stop queues
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the worker
-- ARGV[3]    the leadership's time in ms
-- ARGV[4]    the number of types
-- ARGV[5..]  the types, then the ids of the jobs that the worker runs
-- Returns [1]  the ids of jobs to cancel
--         [2]  1 if this worker is the leader
--         [3]  in how many ms the next delayed job or schedule is due, -1 for none
--         [4]  per type its migration, '' for none
--         [5]  for the leader, the tasks of maintenance that have something to do
--         [6]  how often the server's clock went back
local MOST = math.floor(1000 / math.max(1, #KEYS)) -- requests of each queue in one call
local now, every, types = clock(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local held, taken, answer = {}, {}, {}
local room = 100 -- waiting jobs cancelled in one call: each searches lists
for a = 5 + types, #ARGV do held[ARGV[a]] = 'runs' end

-- Returns the time in ms at which a request expires.
local function expires(id)
  local since = tonumber(redis.call('ZSCORE', STOPS, id) or '')
  if not since or since > now then
    since = now
    redis.call('ZADD', STOPS, int(now), id)
  end
  return since + STOP_TTL
end

-- Handles a request. Returns true if it is done.
local function dealt(id)
  if not names_job(id) then return true end
  local key = JOB .. id
  local has, other = record(key, 'mw_lock', 'script_type', 'worker_id', 'actor_id')
  if held[id] == 'runs' then
    held[id] = 'stops'
    taken[#taken + 1] = id
  end
  if has.status == 'started' then
    if not held[id] then return expires(id) <= now end
    -- If this answer is lost, the next renewal repeats it.
    if redis.call('HSETNX', key, 'mw_stop', 'stopped_by_request') == 1 then
      redis.call('HSET', key, 'mw_with', '1')
      event(id, 'stop', ARGV[2], 'stopped_by_request')
    end
  elseif other then return expires(id) <= now
  elseif has.status and not final(has.status) then
    if room <= 0 then return false end
    room = room - ((has.mw_lock or not (has.mw_reply or has.mw_queue)) and 50 or 1)
    local queue = has.mw_queue or (WORK .. string.lower(has.script_type or ''))
    cancel_waiting(id, key, has, 'stopped_by_request', queue, now, ARGV[2])
  end
  return true
end

for _, queue in ipairs(KEYS) do
  -- The oldest requests; those that stay go to the other end, so that the others come next.
  local ids, seen = try('LRANGE', queue, -MOST, -1), {}
  for i = #ids, 1, -1 do
    local id = ids[i]
    if not seen[id] and dealt(id) then
      redis.call('ZREM', STOPS, id)
    elseif not seen[id] then
      redis.call('LPUSH', queue, id)
    end
    seen[id] = true
  end
  if #ids > 0 then redis.call('LTRIM', queue, 0, -#ids - 1) end
end
-- Times of requests that expired with their queue.
redis.call('ZREMRANGEBYSCORE', STOPS, '-inf', int(now - 10 * STOP_TTL))
local turn = tonumber(redis.call('GET', LEADER) or '') or 0
-- A leadership that ends too late began before the clock was set back.
local mine = not (turn > now) or turn > now + 10 * every
if mine then redis.call('SET', LEADER, int(now + every)) end
for a = 5, 4 + types do
  -- Settings of another type name no migration; they keep no other work from its leader.
  local migration = try('HGET', CONFIG, 'migration:' .. ARGV[a])
  answer[#answer + 1] = type(migration) == 'string' and migration or ''
end
-- A call that a key of another kind fails counts as something to do: the task reports it.
local function is_due(set)
  local due = try('ZRANGEBYSCORE', set, '-inf', int(now), 'LIMIT', 0, 1)
  return due.err or due[1]
end
local tasks = {}
if mine then
  -- Each worker is registered once for each of its types: more entries are those of others, which may be gone.
  local actors = try('ZCARD', ACTORS)
  if type(actors) ~= 'number' or actors > types then tasks[#tasks + 1] = 'reclaim_dead' end
  if redis.call('EXISTS', UNRESOLVED) == 1 then tasks[#tasks + 1] = 'resolve_dependents' end
  if is_due(WATCHED) or is_due(STARTS) then tasks[#tasks + 1] = 'check_orphans' end
  if is_due(BATCHES_OPEN) then tasks[#tasks + 1] = 'sweep_batches' end
end
return respond({taken, mine and 1 or 0, soonest(now), answer, tasks, note_clock()})
