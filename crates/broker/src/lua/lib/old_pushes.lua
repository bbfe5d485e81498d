--- @include claim_fast, dual_write, wake_scheduler
-- Ids that a legacy list may hold too: the worker that removes an id from that list has the job.
local NEAR = 1000

-- Returns true if the id was removed from its legacy list. Most ids are near an end; a call may search one long list.
local function unlocked(list, id)
  local length = redis.pcall('LLEN', list)
  if type(length) ~= 'number' then return true end
  if redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', NEAR) then
    return redis.call('LREM', list, -1, id) == 1
  end
  walked = walked or length > 2 * NEAR
  return redis.call('LREM', list, 1, id) == 1
end

-- A foreign client may have pushed a job of a migrating type to a legacy list too. Removes its id there: the worker
-- that removes an id has the job. Returns true if no list held it and it may not run yet: its second push may be under
-- way, or a legacy worker may have popped the id and not yet written `started`.
local GRACE = 200 -- ms: longer than between two commands of a client or worker that is not suspended
local LONGEST_STROLL = 20000 -- entries of legacy lists searched before the call ends: 0.2 ms
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
