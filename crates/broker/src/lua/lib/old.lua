-- Jobs that a worker without leases may have taken off a list, and what becomes of them when it is gone.
local again = {} -- the ids that were pushed again

local function later(id, ms) redis.call('ZADD', WATCH, whole(ms), id) end

local function told(id)
  again[#again + 1] = id
  event(id, 'requeue', 'watch')
end

local function push_again(id, key, has, now)
  redis.call('ZREM', WATCH, id)
  if has.mw_stop then return fault(id, key, has, has.mw_stop, now, nil, '', true) end
  redis.call('HDEL', key, 'mw_lock', 'mw_seen', 'mw_token')
  redis.call('HSET', key, 'status', 'dispatched', 'updated_at', iso(now))
  if not has.mw_reply then
    redis.call('HSET', key, 'mw_legacy', '1')
    has.mw_legacy = '1'
  end
  local there, stands = holds(has.mw_queue, id), true
  if not there then there, stands = deliver('LPUSH', id, key, has, has.mw_queue, now, true) end
  if not there then return end
  told(id)
  if not stands then return end
  double(id, key, has.mw_queue, has.script_type, worker_of(has), now)
  mind(id, key, now)
end

-- Run by a worker that may be gone.
local function started(id, key, has, after, now, losses)
  if redis.call('ZSCORE', LEASES, id) then return redis.call('ZREM', WATCH, id) end
  local limit = timeout_of(has) + after
  if now - since(key, has, 'started', now) < limit or old_place(id, has) then return later(id, now + after) end
  local lost = (tonumber(has.mw_lost or '') or 0) + 1
  redis.call('HSET', key, 'mw_lost', lost)
  event(id, 'lost', worker_of(has))
  count(has.mw_queue, 'lost')
  if lost < losses then return push_again(id, key, has, now) end
  fault(id, key, has, 'lost: ' .. lost .. ' workers went away while they ran this job', now, 'poison', '', true,
    'lost')
end

-- To be run by a worker that may be away, and then by others.
local function targeted(id, key, has, after, now)
  local presence, fallback = string.match(has.mw_fallback, '^(%S+) (%S+)$')
  if presence and redis.call('EXISTS', presence) == 1 then return false end
  redis.call('HDEL', key, 'mw_fallback')
  has.mw_fallback = nil
  if not presence then return false end
  unqueue(has.mw_queue or '', id)
  if has.mw_with then strike(has.mw_queue, id, more(key, has)) end
  redis.call('HSET', key, 'mw_queue', fallback)
  if not deliver('LPUSH', id, key, has, fallback, now, true) then return true end
  told(id)
  if has.mw_lock then later(id, now + after) else redis.call('ZREM', WATCH, id) end
  return true
end

-- To be run, and perhaps popped by a worker that died before it said so.
local function dispatched(id, key, has, after, phase, now)
  if has.mw_fallback and targeted(id, key, has, after, now) then return end
  local pause = has.mw_fallback and LOOK_EVERY or after
  if has.mw_fallback and not has.mw_lock then return later(id, now + pause) end
  if not has.mw_queue or redis.call('ZSCORE', DELAYED, id) then return redis.call('ZREM', WATCH, id) end
  local list = old_place(id, has)
  local both = (phase or 'dual') ~= 'dual' and not has.mw_reply
  if list and both and not has.mw_lock then share(id, key, has, list) end
  if list or (not has.mw_lock and holds(has.mw_queue, id)) or in_feed(id) then
    redis.call('HDEL', key, 'mw_seen')
    return later(id, now + pause)
  end
  if now - since(key, has, 'away', now) < after then return later(id, now + math.min(pause, after)) end
  push_again(id, key, has, now)
end
