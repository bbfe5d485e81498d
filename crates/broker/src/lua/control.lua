--- @include ending, fair_refill, cancel_waiting, element
--- @flags allow-oom
-- What a worker has to know once a second: which of its jobs are to stop, whether it is its turn to do the
-- duties of all, and how the migration of its types stands. Waiting jobs are stopped right here. Requests
-- that nobody takes are dropped after a while, and those about jobs that have ended or are none at once.
-- KEYS    the control and stop queues
-- ARGV    now, worker, turn in ms, number of types, these; the ids that the worker runs
-- Returns the ids to stop, 1 if it is this worker's turn, in how many ms the next delayed job is due
--         (-1: none), per type its migration ('' if there is none)
local MOST = math.floor(1000 / math.max(1, #KEYS)) -- requests looked at in one call, of each queue
local now, every, types = clock(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local held, taken, answer = {}, {}, {}
local room = 100 -- to end a job that waits walks through lists; this many in one call
for a = 5 + types, #ARGV do held[ARGV[a]] = 'runs' end

-- Until when somebody may still take the request.
local function expires(id)
  local since = tonumber(redis.call('ZSCORE', STOPS, id) or '')
  if not since or since > now then
    since = now
    redis.call('ZADD', STOPS, int(now), id)
  end
  return since + STOP_TTL
end

-- Whether the request is dealt with.
local function dealt(id)
  if not names_job(id) then return true end
  local key = JOB .. id
  local has = record(key, 'mw_lock', 'script_type', 'worker_id', 'actor_id')
  if held[id] == 'runs' then
    held[id] = 'told'
    taken[#taken + 1] = id
  end
  if has.status == 'started' then
    if not held[id] then return expires(id) <= now end
    -- Should this answer get lost, the next renewal says it again.
    if redis.call('HSETNX', key, 'mw_stop', 'stopped_by_request') == 1 then
      redis.call('HSET', key, 'mw_with', '1')
      event(id, 'stop', ARGV[2], 'stopped_by_request')
    end
  elseif not final(has.status) and exists(key) then
    if room <= 0 then return false end
    room = room - ((has.mw_lock or not (has.mw_reply or has.mw_queue)) and 50 or 1)
    local queue = has.mw_queue or (WORK .. string.lower(has.script_type or ''))
    cancel_waiting(id, key, has, 'stopped_by_request', queue, now, ARGV[2])
  end
  return true
end

for _, queue in ipairs(KEYS) do
  -- The oldest requests; those that stay go to the other end, so that each has its turn.
  local ids, seen = redis.pcall('LRANGE', queue, -MOST, -1), {}
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
-- A request that went away with its queue says nothing of a later one.
redis.call('ZREMRANGEBYSCORE', STOPS, '-inf', int(now - 10 * STOP_TTL))
local turn = tonumber(redis.call('GET', TURN) or '') or 0
-- A turn that ends too late was given before the clock was set back.
local mine = not (turn > now) or turn > now + 10 * every
if mine then redis.call('SET', TURN, int(now + every)) end
for a = 5, 4 + types do
  answer[#answer + 1] = redis.call('HGET', CONFIG, 'migration:' .. ARGV[a]) or ''
end
return respond({taken, mine and 1 or 0, soonest(now), answer})
