--- @include complete/complete_fast, complete/ending
-- Completes a job on the slow path, with all its options.
local function complete_slow(id, token, output, stdout, stderr, now)
  local key = JOB .. id
  local has = record(key, 'mw_token', 'mw_worker', 'mw_attempt', 'error', 'mw_stop', 'mw_lost',
    'mw_started')
  if has.mw_token ~= token then return false end
  if has.status == 'finished' then return true end
  if has.status ~= 'started' then return false end
  if has.mw_with then unlease(id, key, has) else over[#over + 1] = id end
  if has.error or has.mw_stop or has.mw_lost or has.mw_attempt ~= '1' then
    redis.call('HDEL', key, 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_stop')
  end
  redis.call('HSET', key, 'status', 'finished', OUTPUT, output, updated(now))
  if stdout ~= '' then redis.call('HSET', key, 'mw_stdout', stdout) end
  if stderr ~= '' then redis.call('HSET', key, 'mw_stderr', stderr) end
  ran(has.mw_queue, has.mw_started, now)
  finalize(id, key, has, 'finished', output, now, nil, has.mw_worker)
  return true
end

-- Notifies the dependents that these keys (DEPENDENTS) list of completed jobs.
local function notify_all(keys, now)
  for _, key in ipairs(keys) do
    if redis.call('EXISTS', key) == 1 then notify_dependents(string.sub(key, #DEPENDENTS + 1), true, now, MOST_NOTIFIED) end
  end
end
