-- Storing jobs and pushing their ids. What is the same for all jobs of a call is written at the end.
local ends, limit_of, ready = {}, {}, {}

-- How many more ids a queue takes; an error if it is no list.
local function space(queue)
  if not ends[queue] then
    local length = redis.pcall('LLEN', queue)
    if type(length) ~= 'number' then return nil, length end
    local own = 'limit:' .. queue
    local set = read(CONFIG, own, 'limit')
    limit_of[queue] = (tonumber(set[own] or set.limit or '') or INFINITE) - length
    ends[queue] = {}
  end
  return limit_of[queue] - #ends[queue]
end

-- Why a queue does not take a job.
local function refused(queue, from, n)
  local set = settings(queue)
  if set and set.draining == '1' then return 'draining' end
  if set and set.payload then
    local bytes = 0
    for i = from + 1, from + n - 1, 2 do bytes = bytes + #ARGV[i] end
    if bytes > set.payload then return 'large ' .. bytes end
  end
  local left, fault = space(queue)
  if not left then return fault end
  return left <= 0 and 'full'
end

local function put(key, queue, o, from, n, status, now, at)
  redis.call('HSET', key, 'status', status, 'created_at', at, 'updated_at', at, unpack(ARGV, from, from + n - 1))
  o.due = o.due and tonumber(o.due) or (o.delay and now + tonumber(o.delay))
  if o.due then redis.call('HSET', key, 'mw_run_at', whole(o.due)) end
  if o.seq then redis.call('HSET', key, 'mw_seq', o.seq) end
  -- What others have to find it by.
  if o.key or o.due or o.unique or o.batch then redis.call('HSET', key, 'mw_queue', queue, 'mw_with', '1') end
end

-- Queues a job that waits for no other: at once, at its time, or when it is the turn of its key.
local function queue_up(id, key, queue, script_type, o, now)
  if o.due and o.due > now then
    redis.call('ZADD', DELAYED, whole(o.due), id)
    if redis.call('ZRANK', DELAYED, id) == 0 then ready.first = true end
    return
  end
  if o.key and not enters(queue, id, {mw_key = o.key, mw_seq = o.seq}, now) then return end
  local ids = ends[queue]
  ids[#ids + 1] = id
  double(id, key, queue, script_type, o.worker, now)
  if o.presence then mind(id, key, now) end
end

-- Stores a job whose fields are the n strings from ARGV[from] on; `o` says what else it asks for. What
-- became of it, or an error.
local function store(id, key, queue, script_type, o, from, n, now, at, who)
  if redis.call('EXISTS', key) == 1 then return 'exists' end
  local open, why, unknown = {}
  if o.after then open, why, unknown = unmet(o.after, o.on_failure) end
  if unknown then return 'unknown ' .. unknown end
  local away = o.presence and redis.call('EXISTS', o.presence) == 0
  if away then queue = o.fallback end
  local no = (o.batch and barred(o, now)) or refused(queue, from, n) or fit(o)
    or (o.unique and taken_by(id, o, now, who))
  if no then return no end
  put(key, queue, o, from, n, open and 'dispatched' or 'error', now, at)
  -- Where it really goes: its route tells of the worker it was meant for.
  if o.presence then redis.call('HSET', key, 'mw_queue', queue) end
  if o.presence and not away then redis.call('HSET', key, 'mw_fallback', o.presence .. ' ' .. o.fallback) end
  if o.batch then joining[o.batch].ids[#joining[o.batch].ids + 1] = id end
  count(queue, 'created')
  event(id, 'enqueue', who, script_type)
  if not open then
    local has = record(key)
    has.mw_queue = queue
    redis.call('HSET', key, 'error', why)
    count(queue, 'error:prerequisite')
    close(id, key, has, 'error', why, now, nil, '')
  elseif o.callback then
    local batch = string.match(o.callback, ' (.*)$')
    redis.call('HSET', key, 'mw_queue', queue, 'mw_callback', o.callback, 'mw_waiting', '"batch ' .. batch .. '"')
  elseif #open > 0 then
    hold(id, key, queue, open, now, tonumber(o.timeout))
  else
    queue_up(id, key, queue, script_type, o, now)
  end
  return 'stored'
end

-- Pushes the ids of what was stored.
local function push_all()
  join_all()
  for queue, ids in pairs(ends) do
    if #ids > 0 then redis.call('LPUSH', queue, unpack(ids)) end
  end
  if ready.first then wake() end
end
