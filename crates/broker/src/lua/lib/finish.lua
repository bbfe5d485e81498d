-- Ending jobs with their results, many in one call. What is the same for all is written at the end.
local over = {}

-- Ends one; false if it is not the worker's any more. Said twice, it changes nothing.
local function finish(id, token, output, stdout, stderr, now, at)
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
  redis.call('HSET', key, 'status', 'finished', 'output', output, 'updated_at', at)
  if stdout ~= '' then redis.call('HSET', key, 'mw_stdout', stdout) end
  if stderr ~= '' then redis.call('HSET', key, 'mw_stderr', stderr) end
  ran(has, now)
  close(id, key, has, 'finished', output, now, nil, has.mw_worker)
  return true
end

-- The jobs of a call, five arguments each from `a` on. Returns the places of those that were not the worker's.
local FIELDS = 5
local function finish_all(n, a, now)
  local stale, at = {}, iso(now)
  redis.call('ZCARD', LEASES) -- should it be no such set, the call ends here, with nothing written
  for i = 1, n do
    if not finish(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], now, at) then
      stale[#stale + 1] = i
    end
    a = a + FIELDS
  end
  if #over > 0 then redis.call('ZREM', LEASES, unpack(over)) end
  return stale, a
end
