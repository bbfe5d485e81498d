--- @include complete/ending, dependencies/dependencies, queue/remove_from_lists, orphans/list, old_place, orphans/canonical_lists, claim/free_slots
-- Rescue of jobs that a worker without leases may have popped and lost.
local again = {} -- the ids that were pushed again

local function look_later(id, ms) redis.call('ZADD', WATCHED, int(ms), id) end

local function mark_requeued(id)
  again[#again + 1] = id
  event(id, 'requeue', 'watch')
end

local function push_again(id, key, has, now)
  unwatch(id)
  if has.mw_stop then return fail_job(id, key, has, has.mw_stop, now, nil, '', true) end
  redis.call('HDEL', key, 'mw_lock', 'mw_seen', 'mw_token')
  redis.call('HSET', key, 'status', 'dispatched', updated(now))
  -- Its list is unknown, so its client may wait on either reply list.
  if LEGACY and not has.mw_reply and not has.mw_legacy then
    redis.call('HSET', key, 'mw_legacy', 'both')
    has.mw_legacy = 'both'
  end
  local there, stands = holds(has.mw_queue, id), true
  if not there then there, stands = deliver('LPUSH', id, key, has, has.mw_queue, now, true) end
  if not there then return end
  mark_requeued(id)
  if not stands then return end
  dual_write(id, key, has.mw_queue, type_of(has), worker_of(has), now)
  track_fallback(id, key, now)
end

-- Checks a started job without a lease: its worker may be dead.
local function started(id, key, has, after, now, losses)
  if redis.call('ZSCORE', LEASES, id) then return unwatch(id) end
  local timeout, from = timeout_of(has), since(key, has, 'started', now)
  note_stale(id, 'started', from + timeout)
  local left = timeout + after - (now - from)
  if left > 0 then return look_later(id, now + math.min(after, left)) end
  if old_place(id, has) then return look_later(id, now + after) end
  local lost = (tonumber(has.mw_lost or '') or 0) + 1
  redis.call('HSET', key, 'mw_lost', lost)
  event(id, 'lost', worker_of(has))
  count(has.mw_queue, 'lost')
  if lost < losses then return push_again(id, key, has, now) end
  unwatch(id)
  fail_job(id, key, has, 'lost: ' .. lost .. ' workers went away while they ran this job', now, 'poison', '', true,
    'lost')
end

-- Moves a job for one worker to its fallback queue if that worker is away or full. Returns true if it did.
local function targeted(id, key, has, after, now)
  local presence, fallback = string.match(has.mw_fallback, '^(%S+) (%S+)$')
  local known = presence and own_key(presence) and own_queue(fallback)
  if known and has_free_slot(presence) then return false end
  redis.call('HDEL', key, 'mw_fallback')
  has.mw_fallback = nil
  if not known then return false end
  unqueue(has.mw_queue or '', id)
  if has.mw_with then drop_slot(has.mw_queue, id, more(key, has)) end
  redis.call('HSET', key, 'mw_queue', fallback)
  if not deliver('LPUSH', id, key, has, fallback, now, true) then return true end
  mark_requeued(id)
  if has.mw_lock then look_later(id, now + after) else unwatch(id) end
  return true
end

-- Returns true if the backlog of its key holds the job.
local function in_backlog(id, key, has)
  local name = has.mw_with and more(key, has).mw_key
  return name and redis.call('ZSCORE', BACKLOG .. member(has.mw_queue, name), id)
end

-- Checks a waiting job: a worker may have popped it and died before it wrote `started`.
local function dispatched(id, key, has, after, phase, now)
  if has.mw_fallback and targeted(id, key, has, after, now) then return end
  local pause = has.mw_fallback and LOOK_EVERY or after
  if has.mw_fallback and not has.mw_lock then return look_later(id, now + pause) end
  if not has.mw_queue or redis.call('ZSCORE', DELAYED, id) or in_backlog(id, key, has) then return unwatch(id) end
  local list = (not has.mw_reply or has.mw_lock) and old_place(id, has)
  local both = (phase or 'dual') ~= 'dual' and not has.mw_reply
  if list and both and not has.mw_lock then share(id, key, has, list) end
  local place = not list and not has.mw_lock and canonical_place(id, has)
  if place then note_place(key, has, place) end
  local unsure = vague and not (has.mw_reply and not has.mw_key)
  if list or place or in_feed(id) or unsure then
    redis.call('HDEL', key, 'mw_seen')
    if not (phase or has.mw_lock or has.mw_fallback) then return unwatch(id) end -- the next scan finds it
    unwatch(id)
    return look_later(id, now + pause)
  end
  local from = since(key, has, 'away', now)
  note_stale(id, 'away', from)
  local unknown = not has.mw_reply and not has.mw_lock and from > whole_at()
  if now - from < after or unknown then return look_later(id, now + math.min(pause, after)) end
  push_again(id, key, has, now)
end
