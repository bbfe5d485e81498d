--- @include claim/claim_fast, dual_write, queue/wake_scheduler
-- Ids that a legacy list may hold too: the worker that removes an id from that list has the job.
local NEAR = 1000

-- Returns true if the id was removed from its legacy list. Most ids are near an end; a call may search one long list.
local function unlocked(list, id)
  local length = try('LLEN', list)
  if type(length) ~= 'number' then return true end
  if redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', NEAR) then
    return redis.call('LREM', list, -1, id) == 1
  end
  walked = walked or length > 2 * NEAR
  return redis.call('LREM', list, 1, id) == 1
end

-- Returns true if workers without leases listen to the legacy list of a type that does not migrate: the list has held an
-- id within a day. A client may push there too during a transition that nobody has announced.
local LISTENED_FOR = 86400000 -- ms
local listened = {}
local function is_listened(script_type)
  if not LEGACY or script_type == '' then return false end
  if listened[script_type] == nil then
    local length, field = try('LLEN', OLD_TYPE .. script_type), 'old:' .. script_type
    local now = type(length) == 'number' and length > 0
    local at = not now and try('HGET', WALK, field)
    listened[script_type] = now or type(at) == 'string' and ask.now - (tonumber(at) or 0) < LISTENED_FOR
    if now then try('HSET', WALK, field, int(ask.now)) end
  end
  return listened[script_type]
end

-- A foreign client may have pushed a job of a migrating type, or of one with a legacy list, to a legacy list too.
-- Removes its id there: the worker that removes an id has the job. Returns true if no list held it and it may not run
-- yet: its second push may follow, or a legacy worker may have popped the id and not yet written `started`.
local GRACE = 200 -- ms: longer than between two commands of a client or worker that is not suspended
local LONGEST_SEARCH = 20000 -- entries of legacy lists searched before the call ends: 0.2 ms
local searched = 0
local function await_second_push(is, id, key, list, queue, legacy)
  if is.mw_lock or is.mw_reply then return false end
  local script_type = (is.script_type or '') ~= '' and is.script_type or string.match(queue, '^[^:]+', #WORK + 1)
  local worker_id = worker_of(is)
  local set, _, phase = old_list(script_type, worker_id)
  if not phase and not is_listened(string.lower(script_type or '')) then return false end
  local lists, seen = {OLD_TYPE .. string.lower(script_type or ''), JOB .. worker_id, OLD_WORK .. worker_id, set}, {}
  local found = legacy
  seen[list] = true
  for _, old in ipairs(lists) do
    local length = not seen[old] and try('LLEN', old)
    seen[old] = true
    if type(length) == 'number' and length > 0 then
      searched = searched + length
      found = redis.call('LREM', old, -1, id) > 0 or found
    end
  end
  walked = walked or searched > LONGEST_SEARCH
  if found or is.mw_attempt or string.find(is.mw_seen or '', ' new', 1, true) then return false end
  if type(try('ZADD', DELAYED, int(ask.now + GRACE), id)) ~= 'number' then return false end
  redis.call('HSET', key, 'mw_queue', queue, 'mw_seen', int(ask.now) .. ' new')
  if redis.call('ZRANK', DELAYED, id) == 0 then wake() end
  return true
end
