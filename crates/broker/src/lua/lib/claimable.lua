--- @include claim_fast, dual_write, wake_scheduler
-- Whether a job may be taken off the list on which its id was found.
local NEAR = 1000

-- Defers a job that is `started` without a lease: a worker without leases runs it, or left it, and somebody has
-- pushed its id again. The watch runs it when its timeout and an age have passed. Returns false if it is no such job.
local function defer_to_foreign(is, id, key, list, queue, legacy)
  if is.status ~= 'started' or (is.mw_lock and is.mw_lock ~= list) then return false end
  if redis.call('ZSCORE', LEASES, id) then return false end
  -- Where nobody could look after it, it runs at once.
  if type(redis.pcall('ZADD', WATCH, 'NX', int(ask.now), id)) ~= 'number' then
    is.status = 'dispatched'
    return false
  end
  redis.call('HSETNX', key, 'mw_seen', int(ask.now) .. ' started ' .. (is.updated_at or ''))
  redis.call('HSETNX', key, 'mw_queue', queue)
  if legacy and not is.mw_reply then redis.call('HSET', key, 'mw_legacy', '1') end
  event(id, 'defer', '', 'another worker may run it')
  return true
end

-- Whether the id could be taken off the old list that it stands on as well. Most are near one of its ends;
-- one walk through a long list is all that a call may do.
local function unlocked(list, id)
  local length = redis.pcall('LLEN', list)
  if type(length) ~= 'number' then return true end
  if redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', NEAR) then
    return redis.call('LREM', list, -1, id) == 1
  end
  walked = walked or length > 2 * NEAR
  return redis.call('LREM', list, 1, id) == 1
end

-- Whether the job is to be run, and to be taken from this list.
local function takeable(is, id, list)
  if is.status ~= '' and is.status ~= 'dispatched' then return false end
  return not is.mw_lock or is.mw_lock == list or unlocked(is.mw_lock, id)
end

-- A job of another client whose type migrates may have been pushed to an old list too, without the mark of ours.
-- Takes its id off there: whoever takes it off a list has the job. Returns true if it is on none, and not to be run
-- yet: its second push may be under way, or an old worker may have popped the id and not yet written `started`.
local GRACE = 200 -- ms: longer than between two commands of a client or worker that is not suspended
local LONGEST_STROLL = 20000 -- entries of old lists walked over before the call ends: 0.2 ms
local strolled = 0
local function await_second_push(is, id, key, list, queue, legacy)
  if is.mw_lock or is.mw_reply then return false end
  local script_type = (is.script_type or '') ~= '' and is.script_type or string.match(queue, '^[^:]+', #WORK + 1)
  local worker_id = worker_of(is)
  local set, _, phase = old_list(script_type, worker_id)
  if not phase then return false end
  local lists, seen = {OLD_TYPE .. string.lower(script_type or ''), JOB .. worker_id, OLD_WORK .. worker_id, set}, {}
  local found = legacy
  seen[list] = true
  for _, old in ipairs(lists) do
    local length = not seen[old] and redis.pcall('LLEN', old)
    seen[old] = true
    if type(length) == 'number' and length > 0 then
      strolled = strolled + length
      found = redis.call('LREM', old, -1, id) > 0 or found
    end
  end
  walked = walked or strolled > LONGEST_STROLL
  if found or is.mw_attempt or string.find(is.mw_seen or '', ' new', 1, true) then return false end
  if type(redis.pcall('ZADD', DELAYED, int(ask.now + GRACE), id)) ~= 'number' then return false end
  redis.call('HSET', key, 'mw_queue', queue, 'mw_seen', int(ask.now) .. ' new')
  if redis.call('ZRANK', DELAYED, id) == 0 then wake() end
  return true
end

-- Where a job from an old list goes from now on: back there, both sides could take it.
local function canonical_queue(has)
  local script_type = string.lower(has.script_type or '')
  return has.mw_queue or (script_type ~= '' and WORK .. script_type) or nil
end
