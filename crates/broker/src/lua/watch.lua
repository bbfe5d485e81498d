-- Looks after jobs to which no other script comes back: those that wait for others, those that an old
-- worker may have taken, and those whose worker may be away.
-- KEYS
-- ARGV    now, most jobs in one call, most losses of one job, most list entries walked over in one call
-- Returns how many were looked at, the ids that were pushed again
local now, losses, budget = clock(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local looked, again = 0, {}

local function later(id, ms) redis.call('ZADD', WATCH, whole(ms), id) end

-- Ended by a worker that tells nobody but the record.
local function ended(id, has)
  redis.call('ZREM', WATCH, id)
  if redis.call('ZSCORE', ENDED, id) or redis.call('ZSCORE', DEAD, id) then return end
  redis.call('ZADD', ENDED, whole(now), id)
  event(id, has.status, has.worker_id)
  if redis.call('EXISTS', NEXT .. id) == 1 then redis.call('RPUSH', SETTLE, id) end
end

local function waiting(id, key, has)
  local expires = tonumber(has.mw_expires or '') or 0
  if now >= expires then return fault(id, key, has, 'timeout', now, nil, '', true) end
  local seen, ids = {}, {}
  ids_of(seen, ids, has.prerequisites)
  ids_of(seen, ids, has.dependencies)
  for _, prerequisite in ipairs(ids) do
    local status = read(JOB .. prerequisite, 'status').status
    if (not status or final(status)) and redis.call('EXISTS', NEXT .. prerequisite) == 1 then
      redis.call('RPUSH', SETTLE, prerequisite)
    end
  end
  later(id, math.min(expires, now + LOOK_EVERY))
end

local function push_again(id, key, has)
  redis.call('ZREM', WATCH, id)
  redis.call('HDEL', key, 'mw_lock', 'mw_seen', 'mw_token')
  redis.call('HSET', key, 'status', 'dispatched', 'updated_at', iso(now))
  if not has.mw_reply then redis.call('HSET', key, 'mw_legacy', '1') end
  if deliver('LPUSH', id, key, has, has.mw_queue, now, true) then
    double(id, key, has.mw_queue, has.script_type, has.worker_id, now)
    again[#again + 1] = id
    event(id, 'requeue', 'watch')
  end
end

-- Run by a worker without leases, which may be gone.
local function started(id, key, has, after)
  local lost = (tonumber(has.mw_lost or '') or 0) + 1
  local limit = 1000 * (tonumber(has.timeout or '') or DEFAULT_TIMEOUT) + after
  if redis.call('ZSCORE', LEASES, id) then return redis.call('ZREM', WATCH, id) end
  if now - since(key, has, 'started', now) < limit then return later(id, now + after) end
  if old_place(id, has) then return later(id, now + after) end -- somebody has pushed it again
  redis.call('HSET', key, 'mw_lost', lost)
  if lost < losses then return push_again(id, key, has) end
  fault(id, key, has, 'lost: ' .. lost .. ' workers went away while they ran this job', now, 'poison', '', true)
end

local function dispatched(id, key, has, after, phase)
  local presence, fallback = string.match(has.mw_fallback or '', '^(%S+) (%S+)$')
  if presence and redis.call('EXISTS', presence) == 1 then return later(id, now + LOOK_EVERY) end
  if presence then
    unqueue(has.mw_queue, id)
    redis.call('HDEL', key, 'mw_fallback')
    redis.call('HSET', key, 'mw_queue', fallback)
    has.mw_queue = fallback
    return push_again(id, key, has)
  end
  if not has.mw_queue then return redis.call('ZREM', WATCH, id) end
  local list = old_place(id, has)
  local both = (phase or 'dual') ~= 'dual' and not has.mw_reply
  if list and both and not has.mw_lock then share(id, key, has, list) end
  if list or (not has.mw_lock and holds(has.mw_queue, id)) or in_feed(id) then
    if has.mw_seen then redis.call('HDEL', key, 'mw_seen') end
    return later(id, now + after)
  end
  -- It may be in the hands of a worker that is about to say so: seen twice, it is not.
  if now - since(key, has, 'away', now) < after then later(id, now + after) else push_again(id, key, has) end
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', WATCH, '-inf', whole(now), 'LIMIT', 0, ARGV[2])) do
  if walked >= budget then break end
  looked = looked + 1
  local key = JOB .. id
  local has = read(key, 'status', 'mw_waiting', 'mw_expires', 'mw_queue', 'mw_lock', 'mw_seen', 'mw_lost',
    'mw_fallback', 'mw_reply', 'mw_legacy', 'prerequisites', 'dependencies', 'script_type', 'worker_id',
    'actor_id', 'timeout')
  has.worker_id = has.worker_id or has.actor_id
  local _, after, phase = old_list(has.script_type, has.worker_id)
  if final(has.status) then ended(id, has)
  elseif not there(key) then redis.call('ZREM', WATCH, id)
  elseif has.mw_waiting then waiting(id, key, has)
  elseif has.status == 'started' then started(id, key, has, after)
  else dispatched(id, key, has, after, phase) end
end
return {looked, again}
