--- @include telemetry, write_record, enqueue/enqueue_args
--- @lazy dependencies/dependencies, enqueue/unique, queue/wake_scheduler, dependencies/batch_join, enqueue/enqueue_slow gives enqueue_slow, join_all, wake, record, cancel_waiting, drop_job
-- Enqueues jobs on the fast path: jobs without options, in a namespace without settings. enqueue_slow.lua enqueues
-- others. Queues are written once, at the end of the call.
local ends, ready = {}, {}
local set -- true if the namespace has settings

-- Returns the ids that a queue gets at the end of the call; nil and an error if it is no list.
local function end_of(queue)
  if not ends[queue] then
    local length = try('LLEN', queue)
    if type(length) ~= 'number' then return nil, length end
    ends[queue] = {length = length}
  end
  return ends[queue]
end

-- Stores a job with values from ARGV[from] on and options `o`. Returns the answer of enqueue.lua, or an error.
local function store(id, key, queue, script_type, o, from, now, who)
  if redis.call('EXISTS', key) == 1 then return 'exists' end
  if set == nil then set = redis.call('EXISTS', CONFIG) == 1 end
  if o or set then
    local denied = slow_denied()
    if denied then return denied end
    return slow_path().enqueue_slow(id, key, queue, script_type, o or {}, from, now, who)
  end
  local ids, fault = end_of(queue)
  if not ids then return fault end
  write_record(key, id, script_type, 'dispatched', now, from)
  ids[#ids + 1] = id
  count(queue, 'created')
  event(id, 'enqueue', who, script_type)
  return 'stored'
end

-- Pushes the ids of the stored jobs. The first ones of an empty queue note it, so that it is found without a scan.
local function push_all(now)
  if made then made.join_all() end
  for queue, ids in pairs(ends) do
    if #ids > 0 and redis.call('LPUSH', queue, unpack(ids)) == #ids then try('ZADD', LISTS, int(now), queue) end
  end
  if ready.first then slow_path().wake() end
end
