-- Stores jobs and pushes their ids. A job whose id exists is left as it is; one that waits for others is
-- stored without being pushed.
-- KEYS    per job: its hash, its queue
-- ARGV    now, who; then per job: id, type, worker id, timeout in ms, what a failed prerequisite means,
--         presence key of the worker it is for ('' if it waits for it), queue to fall back to,
--         number of prerequisites, these; number of strings that follow, field, value, …
-- Returns per job 'stored', 'exists', 'full', or 'unknown ' and the prerequisite that is not there
local unpack = table.unpack or unpack
local now = clock(ARGV[1])
local at, limits = iso(now), {}

-- Whether a queue holds as many as it may.
local function full(queue)
  if limits[queue] == nil then
    local own = 'limit:' .. queue
    local set = read(CONFIG, own, 'limit')
    limits[queue] = tonumber(set[own] or set.limit or '') or false
  end
  return limits[queue] and redis.call('LLEN', queue) >= limits[queue]
end

local function put(key, from, n, status)
  redis.call('HSET', key, 'status', status, 'created_at', at, 'updated_at', at,
    unpack(ARGV, from, from + n - 1))
end

local function store(key, queue, a, ids, from, n)
  local id, script_type, worker_id = ARGV[a], ARGV[a + 1], ARGV[a + 2]
  if redis.call('EXISTS', key) == 1 then return 'exists' end
  local open, why, unknown = unmet(ids, ARGV[a + 4])
  if unknown then return 'unknown ' .. unknown end
  local presence, fallback = ARGV[a + 5], ARGV[a + 6]
  local away = presence ~= '' and redis.call('EXISTS', presence) == 0
  if away then queue = fallback end
  if full(queue) then return 'full' end
  local function written(status)
    put(key, from, n, status)
    -- Where it really goes: its route tells of the worker it was meant for.
    if presence ~= '' then redis.call('HSET', key, 'mw_queue', queue) end
    if presence ~= '' and not away then
      redis.call('HSET', key, 'mw_fallback', presence .. ' ' .. fallback)
    end
    event(id, 'enqueue', ARGV[2], script_type)
  end
  if not open then
    written('error')
    redis.call('HSET', key, 'error', why)
    close(id, key, read(key, 'mw_reply'), 'error', why, now, nil, '')
  elseif #open > 0 then
    written('dispatched')
    hold(id, key, queue, open, now, tonumber(ARGV[a + 3]))
  else
    -- The queue first: if it is no list the script ends here, with nothing written for this job.
    redis.call('LPUSH', queue, id)
    written('dispatched')
    double(id, key, queue, script_type, worker_id, now)
    mind(id, key, now)
  end
  return 'stored'
end

local told, a = {}, 3
for k = 1, #KEYS, 2 do
  local ids, n = {}, tonumber(ARGV[a + 7])
  for i = a + 8, a + 7 + n do ids[#ids + 1] = ARGV[i] end
  local from = a + 9 + n
  local strings = tonumber(ARGV[from - 1])
  told[#told + 1] = store(KEYS[k], KEYS[k + 1], a, ids, from, strings)
  a = from + strings
end
return told
