--- @include base
-- Writes the result of a job and notifies its callers with 'ready', the only word that Bananas' clients know. A key of
-- another kind stays as it is, and does not keep the job from ending.
local function publish_result(key, channel, now, duration, name, value)
  local good = name ~= 'error'
  local at = string.sub(iso(now), 1, 19) .. 'Z'
  redis.pcall('HDEL', key, 'result', 'error')
  local set = redis.pcall('HSET', key, 'status', good and 'completed' or 'failed', 'completed_at', at,
    'duration_ms', duration)
  if type(set) == 'number' then
    if name then redis.call('HSET', key, name, value) end
    redis.call('PEXPIRE', key, good and RESULT_FOR or FAILURE_FOR)
  end
  redis.call('PUBLISH', channel, 'ready')
end
