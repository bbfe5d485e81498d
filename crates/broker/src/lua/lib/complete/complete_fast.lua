--- @include telemetry, reply
--- @lazy complete/complete_slow gives complete_slow, notify_all
-- Completes jobs on the fast path: jobs of native clients without options. complete_slow.lua completes others. Shared
-- keys are written once, at the end of the call.
local over, next_of = {}, {}
local denied -- the error of a right that is missing: the caller repeats the call

-- Completes a job. Returns false if the token is not the current one. A repeated call changes nothing.
local function complete(id, token, output, stdout, stderr, now)
  local key = JOB .. id
  local has = try('HMGET', key, 'status', 'mw_token', 'mw_with', 'mw_reply', 'mw_queue', 'mw_started',
    'mw_worker')
  if has[1] ~= 'started' or has[2] ~= token or has[3] or not has[4] or stdout ~= '' or stderr ~= '' then
    denied = denied or slow_denied()
    return denied or slow_path().complete_slow(id, token, output, stdout, stderr, now)
  end
  redis.call('HSET', key, 'status', 'finished', OUTPUT, output, updated(now))
  over[#over + 1] = id
  ran(has[5], has[6], now)
  note_end(id, now)
  count(has[5], 'finished')
  if has[4] ~= '0' then reply({mw_reply = has[4]}, id, output) end
  event(id, 'finished', has[7])
  next_of[#next_of + 1] = DEPENDENTS .. id
  return true
end

-- Completes n jobs, five arguments each from ARGV[a] on. Returns the positions of those with a stale token.
local FIELDS = 5
local function complete_all(n, a, now)
  local stale = {}
  redis.call('ZCARD', LEASES) -- should it be no such set, the call ends here, with nothing written
  for i = 1, n do
    if not complete(ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], now) then
      stale[#stale + 1] = i
    end
    a = a + FIELDS
  end
  if #over > 0 then redis.call('ZREM', LEASES, unpack(over)) end
  if #next_of > 0 and redis.call('EXISTS', unpack(next_of)) > 0 then
    denied = denied or slow_denied()
    if not denied then slow_path().notify_all(next_of, now) end
  end
  return stale, a
end
