--- @include complete/ending, dependencies/dependencies, queue/wake_scheduler
-- Imported jobs: their entries in the lists and sets beside the record.
local LOOK_LATER = 3600000 -- ms: time in which prerequisites are imported that follow their dependents
local due_first = false -- true if an imported job is the next one that becomes due

-- Takes the unique name of a job that has not ended.
local function claim_name(id, has, now)
  local ms, name = string.match(has.mw_unique or '', '^(%d+) (.+)$')
  local word, other = string.match(has.mw_unique or '', '^(%a+) (.+)$')
  if ms then
    local left = tonumber(ms) - (now - (tonumber(has.created or '') or now))
    if left > 0 then redis.call('SET', UNIQUE .. name, id, 'NX', 'PX', int(left)) end
  elseif word and not (word == 'started' and (tonumber(has.mw_attempt or '') or 0) > 0) then
    redis.call('SET', UNIQUE .. other, id, 'NX')
  end
end

-- Lists a job that waits for others. If one of them has ended here, the watchdog looks at the job soon.
local function await_imported(id, has, now)
  local at = now + LOOK_LATER
  for _, other in ipairs(awaited(has.mw_waiting)) do
    redis.call('RPUSH', DEPENDENTS .. other, id)
    if final(status_of(other)) then at = now end
  end
  redis.call('ZADD', WATCHED, int(math.min(at, tonumber(has.mw_expires or '') or INFINITE)), id)
end

-- Lists a job by its status; `at` has its scores, each empty if it has none.
local function list_job(id, key, has, now, at)
  if at.dead ~= '' then redis.call('ZADD', DEAD, at.dead, id) end
  if at.ended ~= '' then redis.call('ZADD', ENDED, at.ended, id) end
  if final(has.status) then return end
  if has.mw_unique then claim_name(id, has, now) end
  local by = string.match(has.mw_start_by or '', '^%d+')
  if by then redis.call('ZADD', STARTS, by, id) end
  local top = tonumber(has.mw_seq or '')
  if top and top > (tonumber(redis.call('GET', SEQ) or '') or 0) then redis.call('SET', SEQ, int(top)) end
  if has.mw_callback and has.mw_waiting then return end
  if has.mw_waiting then return await_imported(id, has, now) end
  if at.delayed == '' then return redis.call('HSET', key, 'mw_import', '1') end
  redis.call('ZADD', DELAYED, at.delayed, id)
  due_first = due_first or redis.call('ZRANK', DELAYED, id) == 0
end
