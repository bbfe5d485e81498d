--- @include claim/claim_fast, old_pushes, complete/ending, claim/start_limit, orphans/track
-- Checks of a claim: may a job be claimed off the list on which its id was found?

-- Defers a job that is `started` without a lease: a worker without leases runs or has left it, and its id was pushed
-- again. check_orphans.lua runs it after its timeout and an age. Returns false if it is no such job.
local function defer_to_foreign(is, id, key, list, queue, legacy)
  if is.status ~= 'started' or (is.mw_lock and is.mw_lock ~= list) then return false end
  if redis.call('ZSCORE', LEASES, id) then return false end
  -- A job that cannot be watched runs at once.
  if type(try('ZADD', WATCHED, 'NX', int(ask.now), id)) ~= 'number' then
    is.status = 'dispatched'
    return false
  end
  redis.call('HSETNX', key, 'mw_seen', int(ask.now) .. ' started ' .. (is.updated_at or ''))
  count_foreign(is, queue)
  redis.call('HSETNX', key, 'mw_queue', queue)
  if legacy and not is.mw_reply then redis.call('HSET', key, 'mw_legacy', '1') end
  event(id, 'defer', '', 'another worker may run it')
  return true
end

-- Returns true if the job is to run and may be claimed from this list.
local function takeable(is, id, list)
  if is.status ~= '' and not is_dispatched(is.status) then return false end
  return not is.mw_lock or is.mw_lock == list or unlocked(is.mw_lock, id)
end

-- Fails a job whose time to begin is over. Returns true if it did.
local function fail_late(is, id, key)
  local why = is.mw_start_by and too_late(is, ask.now)
  if not why then return false end
  fail_job(id, key, is, why, ask.now, nil, '', true, 'timeout')
  return true
end

-- Removes the notes of a job that waited: it has begun.
local function note_begun(id, key)
  redis.call('HDEL', key, 'mw_lock', 'mw_seen', 'mw_start_by')
  index_job(id, ask.now)
  try('ZREM', STARTS, id)
  unwatch(id)
end

-- Returns the queue of a job from a legacy list from now on: on that list, foreign workers could take it too.
local function canonical_queue(has)
  local script_type = string.lower(has.script_type or '')
  return has.mw_queue or (script_type ~= '' and WORK .. script_type) or nil
end
