--- @include enqueue/enqueue_fast, queue/queue_settings, dual_write, dependencies/dependencies, enqueue/unique, dependencies/batch_join, claim/free_slots, enqueue/spread
-- Enqueues jobs on the slow path: jobs with options, or of a namespace with settings.
local limit_of = {}

-- Returns how many more ids a queue accepts; nil and an error if it is no list.
local function space(queue)
  local ids, fault = end_of(queue)
  if not ids then return nil, fault end
  if not limit_of[queue] then
    local own = 'limit:' .. queue
    local set = read(CONFIG, own, 'limit')
    limit_of[queue] = (tonumber(set[own] or set.limit or '') or INFINITE) - ids.length
  end
  return limit_of[queue] - #ids
end

-- Returns the bytes of a record's values.
local function size_of(id, script_type, from)
  local bytes, last = #id + #script_type, from + VALUES + tonumber(ARGV[from + VALUES])
  for i = from, from + VALUES - 1 do bytes = bytes + #ARGV[i] end
  for i = from + VALUES + 2, last, 2 do bytes = bytes + #ARGV[i] end
  return bytes
end

-- Returns why a queue refuses a job.
local function refused(queue, id, script_type, from)
  local set = settings(queue)
  if set and set.draining == '1' then return 'draining' end
  if set and set.payload then
    local bytes = size_of(id, script_type, from)
    if bytes > set.payload then return 'large ' .. bytes end
  end
  local left, fault = space(queue)
  if not left then return fault end
  return left <= 0 and 'full'
end

-- Writes the options of a job into its record.
local function note_options(id, key, queue, o, now)
  o.due = o.due and tonumber(o.due) or (o.delay and now + tonumber(o.delay))
  if o.due then redis.call('HSET', key, 'mw_run_at', int(o.due)) end
  if o.seq then redis.call('HSET', key, 'mw_seq', o.seq) end
  if o.start then
    local by = int(math.max(now, o.due or now) + tonumber(o.start))
    redis.call('HSET', key, 'mw_start_by', by .. ' ' .. o.start)
    try('ZADD', STARTS, by, id)
  end
  -- Fields that other scripts read only if `mw_with` is set.
  if o.key or o.due or o.unique or o.batch or o.start then redis.call('HSET', key, 'mw_queue', queue, 'mw_with', '1') end
end

-- Queues a job without prerequisites: at once, at its time, or when its key has a free slot.
local function queue_up(id, key, queue, script_type, o, now)
  if o.due and o.due > now then
    redis.call('ZADD', DELAYED, int(o.due), id)
    if redis.call('ZRANK', DELAYED, id) == 0 then ready.first = true end
    return
  end
  if o.key and not try_enter(queue, id, {mw_key = o.key, mw_seq = o.seq}, now) then return end
  local ids = ends[queue]
  ids[#ids + 1] = id
  dual_write(id, key, queue, script_type, o.worker, now)
  if o.presence then track_fallback(id, key, now) end
end

local function enqueue_slow(id, key, queue, script_type, o, from, now, who)
  local denied, open, why, unknown = o.spread and spread_refuses(o), {}
  if denied then return denied end
  if o.after then open, why, unknown = unmet(o.after, o.on_failure) end
  if unknown then return 'unknown ' .. unknown end
  local away = o.presence and not has_free_slot(o.presence)
  if away then queue = o.fallback end
  local no = (o.batch and batch_refuses(o, now)) or refused(queue, id, script_type, from) or queues_usable(o)
    or (o.unique and taken_by(id, o, now, who))
  if no then return no end
  write_record(key, id, script_type, 'dispatched', now, from)
  note_options(id, key, queue, o, now)
  -- The queue that the job went to; its route names the worker that it was meant for.
  if o.presence then redis.call('HSET', key, 'mw_queue', queue) end
  if o.presence and not away then redis.call('HSET', key, 'mw_fallback', o.presence .. ' ' .. o.fallback) end
  if o.batch then joining[o.batch].ids[#joining[o.batch].ids + 1] = id end
  if o.spread then note_spread(id, o, now) end
  count(queue, 'created')
  event(id, 'enqueue', who, script_type)
  if not open then
    local has = record(key)
    has.mw_queue = queue
    write_error(key, 'error', why, now)
    count(queue, 'error:prerequisite')
    finalize(id, key, has, 'error', why, now, nil, '')
  elseif o.callback then
    redis.call('HSET', key, 'status', WAITING, 'mw_queue', queue, 'mw_callback', o.callback, 'mw_waiting', '"batch ' .. string.match(o.callback, ' (.*)$') .. '"')
    try('ZADD', WATCHED, int(now + LOOK_EVERY), id)
  elseif #open > 0 then
    await_prerequisites(id, key, queue, open, now, tonumber(o.wait))
  else
    queue_up(id, key, queue, script_type, o, now)
  end
  return 'stored'
end
