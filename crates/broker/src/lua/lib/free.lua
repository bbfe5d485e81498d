-- Whether a job may be taken off the list on which its id was found.
local NEAR = 1000

-- Not ended, not waiting, and in nobody's hands. `started` without a lease is what a worker without leases
-- left, and somebody has pushed it again.
local function free(is, id)
  local status = is.status
  if is.mw_waiting or given[id] then return false end
  return status == nil or status == '' or status == 'dispatched'
    or (status == 'started' and not redis.call('ZSCORE', LEASES, id))
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

-- Whether it is this list from which the job is to be taken.
local function takeable(is, id, list)
  if not free(is, id) then return false end
  if not is.mw_lock or is.mw_lock == list then return true end
  return is.status ~= 'started' and unlocked(is.mw_lock, id)
end

-- Where a job from an old list goes from now on: back there, both sides could take it.
local function home(has)
  local script_type = string.lower(has.script_type or '')
  return has.mw_queue or (script_type ~= '' and WORK .. script_type) or nil
end
