--- @include complete/ending, enqueue/drop_job, prerequisites
-- Prerequisites and dependents of jobs.

-- Returns the ids in quotes of `mw_waiting`.
local function awaited(text)
  local ids = {}
  for id in string.gmatch(text or '', '"([^"]+)"') do ids[#ids + 1] = id end
  return ids
end

-- Returns the prerequisites of a job that have not ended; with `patient`, missing ones too. If the job can never run:
-- nil, the reason, and the missing id.
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

-- Returns the timeout of a record in ms; the default for a value that is none.
local function timeout_of(has)
  local s = tonumber(has.timeout or '')
  return 1000 * (s and s > 0 and s <= MAX_TIMEOUT and s or DEFAULT_TIMEOUT)
end

-- Notes that a job waits for the ids in `open`, for `wait` ms at most if given. An id leaves `mw_waiting` when it has ended.
local OUTLASTS = 3600000 -- ms by which a note outlasts the wait, for changed clocks and late checks
local function await_prerequisites(id, key, queue, open, now, wait)
  local expires, name = now + (wait or INFINITE), '"' .. id .. '"'
  for _, prerequisite in ipairs(open) do
    local note = DEPENDENTS .. prerequisite
    local noted = try('RPUSH', note, id)
    if status_of(prerequisite) then note_dependent(prerequisite, name)
    else -- it may never come
      try('PEXPIRE', note, int((wait or 0) + OUTLASTS), unpack(noted == 1 and {} or {'GT'}))
    end
  end
  redis.call('HSET', key, 'status', WAITING, 'mw_waiting', '"' .. table.concat(open, '" "') .. '"',
    'mw_queue', queue, unpack(wait and {'mw_expires', int(expires)} or {}))
  try('ZADD', WATCHED, int(math.min(expires, now + LOOK_EVERY)), id)
end

-- Returns the error of a job whose wait is over.
local function overdue(ids)
  for _, id in ipairs(ids) do
    if not status_of(id) then return 'prerequisite ' .. id .. ' does not exist' end
  end
  return 'timeout: prerequisite ' .. (ids[1] or '') .. ' has not ended'
end

-- Checks a job with prerequisites: fails it when its wait is over, and notifies it of ends that were missed. A missing
-- prerequisite of a foreign client's job may still come. A callback fails if its batch is gone. Returns the number of
-- prerequisites checked.
local BATCH_EVERY = 30000 -- ms between two checks of a callback: batches stay open for days
local function look(id, key, has, now)
  local expires, ids = tonumber(has.mw_expires or '') or INFINITE, awaited(has.mw_waiting)
  if not (now < expires) then return 0, fail_job(id, key, has, overdue(ids), now, nil, '', true, 'timeout') end
  local batch = string.match(ids[1] or '', '^batch (.+)$')
  if batch and redis.call('EXISTS', BATCHES .. batch) == 0 then
    return 1, fail_job(id, key, has, 'batch ' .. batch .. ' does not exist', now, nil, '', true, 'batch')
  end
  for _, prerequisite in ipairs(batch and {} or ids) do
    local status, other = status_of(prerequisite)
    if final(status) or (not (status or other) and has.mw_reply) then
      if redis.call('EXISTS', DEPENDENTS .. prerequisite) == 0 then try('RPUSH', DEPENDENTS .. prerequisite, id) end
      defer_dependents(prerequisite, status == 'finished')
    end
  end
  redis.call('ZADD', WATCHED, int(math.min(expires, now + (batch and BATCH_EVERY or LOOK_EVERY))), id)
  return #ids
end
