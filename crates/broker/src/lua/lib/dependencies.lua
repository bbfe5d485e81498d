--- @include ending, drop_job, prerequisites
-- Prerequisites: who waits for whom.

-- The ids in quotes that `mw_waiting` holds.
local function awaited(text)
  local ids = {}
  for id in string.gmatch(text or '', '"([^"]+)"') do ids[#ids + 1] = id end
  return ids
end

-- Of the prerequisites of a job, those that are still to end, or to come if it is `patient`; or nothing, and why it can
-- never run.
local function unmet(ids, on_failure, patient)
  local open = {}
  for _, id in ipairs(ids) do
    local status = status_of(id)
    if not status and not patient then return nil, 'prerequisite ' .. id .. ' does not exist', id end
    if status == 'error' and on_failure ~= 'continue' then
      return nil, 'prerequisite ' .. id .. ' did not finish'
    end
    if not final(status) then open[#open + 1] = id end
  end
  return open
end

-- The timeout of a record in ms: others may have written what is none.
local function timeout_of(has)
  local s = tonumber(has.timeout or '')
  return 1000 * (s and s > 0 and s <= MAX_TIMEOUT and s or DEFAULT_TIMEOUT)
end

-- Notes that a job waits for those of `open`, for `wait` ms at most if that is said, and where it goes then. Each of
-- them is struck off the list in `mw_waiting` when it has ended.
local OUTLASTS = 3600000 -- ms: by so much a note outlasts the wait, should somebody set the clock or look late
local function await_prerequisites(id, key, queue, open, now, wait)
  local expires, name = now + (wait or INFINITE), '"' .. id .. '"'
  for _, prerequisite in ipairs(open) do
    local note = NEXT .. prerequisite
    local noted = redis.pcall('RPUSH', note, id)
    if status_of(prerequisite) then note_dependent(prerequisite, name)
    else -- it may never come
      redis.pcall('PEXPIRE', note, int((wait or 0) + OUTLASTS), unpack(noted == 1 and {} or {'GT'}))
    end
  end
  redis.call('HSET', key, 'status', WAITING, 'mw_waiting', '"' .. table.concat(open, '" "') .. '"',
    'mw_queue', queue, unpack(wait and {'mw_expires', int(expires)} or {}))
  redis.pcall('ZADD', WATCH, int(math.min(expires, now + LOOK_EVERY)), id)
end

-- Why a job does not wait any longer.
local function overdue(ids)
  for _, id in ipairs(ids) do
    if not status_of(id) then return 'prerequisite ' .. id .. ' does not exist' end
  end
  return 'timeout: prerequisite ' .. (ids[1] or '') .. ' has not ended'
end

-- Looks at a job that waits: whether its time is over, and whether one of those it waits for has ended and no script
-- told, or the note of it is gone. One that is not there may come yet if the job is of another client. Returns how many
-- it looked at.
local function look(id, key, has, now)
  local expires, ids = tonumber(has.mw_expires or '') or INFINITE, awaited(has.mw_waiting)
  if not (now < expires) then return 0, fail_job(id, key, has, overdue(ids), now, nil, '', true, 'timeout') end
  for _, prerequisite in ipairs(ids) do
    local status = status_of(prerequisite)
    if final(status) or (not status and has.mw_reply) then
      if redis.call('EXISTS', NEXT .. prerequisite) == 0 then redis.pcall('RPUSH', NEXT .. prerequisite, id) end
      defer_dependents(prerequisite, status == 'finished')
    end
  end
  redis.call('ZADD', WATCH, int(math.min(expires, now + LOOK_EVERY)), id)
  return #ids
end
