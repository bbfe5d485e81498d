-- What a worker has to know once a second: which of its jobs are to stop, whether it is its turn to do the
-- duties of all, and how the migration of its types stands. Ids of waiting jobs are stopped right here;
-- those that nobody takes are dropped after a while, and those of jobs that have ended at once.
-- KEYS    the control and stop queues
-- ARGV    now, worker, turn in ms, number of types, these; the ids that the worker runs
-- Returns the ids to stop, 1 if it is this worker's turn, in how many ms the next delayed job is due
--         (-1: none), per type its migration ('' if there is none)
local MOST = 1000 -- requests looked at in one call, of each queue
local now, types = clock(ARGV[1]), tonumber(ARGV[4])
local held, taken, answer = {}, {}, {}
for a = 5 + types, #ARGV do held[ARGV[a]] = 'runs' end

-- Whether the request is dealt with.
local function dealt(id)
  if held[id] then
    if held[id] == 'runs' then
      taken[#taken + 1] = id
      -- Should this answer get lost, the next renewal says it again.
      redis.call('HSET', JOB .. id, 'mw_stop', 'stopped_by_request')
    end
    held[id] = 'told'
    return true
  end
  local key = JOB .. id
  local has = read(key, 'status', 'mw_queue', 'mw_reply', 'mw_legacy', 'mw_lock', 'script_type')
  if has.status == 'dispatched' then
    local queue = has.mw_queue or (WORK .. string.lower(has.script_type or ''))
    stop(id, key, has, 'stopped_by_request', queue, now, ARGV[2])
    return true
  end
  if has.status ~= 'started' then return true end
  redis.call('ZADD', STOPS, 'NX', whole(now), id)
  return tonumber(redis.call('ZSCORE', STOPS, id)) + STOP_TTL <= now
end

for _, queue in ipairs(KEYS) do
  local ids = redis.pcall('LRANGE', queue, 0, MOST - 1)
  local seen = {}
  for _, id in ipairs(ids) do
    if not seen[id] and dealt(id) then
      redis.call('LREM', queue, 0, id)
      redis.call('ZREM', STOPS, id)
    end
    seen[id] = true
  end
end
local turn, every = tonumber(redis.call('GET', TURN) or 0), tonumber(ARGV[3])
-- A turn that ends too late was given before the clock was set back.
local mine = turn <= now or turn > now + 10 * every
if mine then redis.call('SET', TURN, whole(now + every)) end
for a = 5, 4 + types do
  answer[#answer + 1] = redis.call('HGET', CONFIG, 'migration:' .. ARGV[a]) or ''
end
local next = redis.call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')
local due = next[2] and whole(math.max(0, tonumber(next[2]) - now)) or '-1'
return {taken, mine and 1 or 0, due, answer}
