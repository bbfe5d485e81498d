-- Takes up to `want` jobs off the queues, in their order, each under a lease with a fencing token.
-- What the process' own feed lists hold comes first; what is more than wanted goes back to its queue.
-- KEYS    per queue, in order: the queue, this process' feed list for it, the queue that its jobs go back
--         to (another one if it is an old list)
-- ARGV    now, want, lease in ms, token, worker
-- Returns number of ids dropped, 1 if ids may be left behind because the script had done enough;
--         then per job: id, the queue that it goes back to, attempt, record
local now = clock(ARGV[1])
local want, token, worker = tonumber(ARGV[2]), ARGV[4], ARGV[5]
local at, deadline = iso(now), whole(now + tonumber(ARGV[3]))
local MOST = 1000 -- ids looked at in one call
local looked, dropped, out = 0, 0, {}
redis.call('ZCARD', LEASES) -- should it be no such set, the call ends here, before ids are taken

-- Whether the job is there to be run: not ended, not waiting, and in nobody's hands. `started` without a
-- lease is what a worker without leases left, and somebody has pushed it again.
local function free(is, id)
  local status = is.status
  if is.mw_waiting then return false end
  return status == nil or status == '' or status == 'dispatched'
    or (status == 'started' and not redis.call('ZSCORE', LEASES, id))
end

-- Whether the id could be taken off the old list that it stands on as well. Most are near one of its ends;
-- one walk through a long list is all that a call may do.
local NEAR, walked = 1000, false
local function unlocked(list, id)
  local length = redis.pcall('LLEN', list)
  if type(length) ~= 'number' then return true end
  if redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', NEAR) then
    return redis.call('LREM', list, -1, id) == 1
  end
  walked = walked or length > 2 * NEAR
  return redis.call('LREM', list, 1, id) == 1
end

-- Where a job from an old list goes from now on: back there, both sides could take it.
local function home(has)
  local script_type = string.lower(has.script_type or '')
  return has.mw_queue or (script_type ~= '' and WORK .. script_type) or nil
end

local function admit(id, k)
  local key, is = JOB .. id, {}
  local record, legacy = redis.pcall('HGETALL', key), KEYS[k + 2] ~= KEYS[k]
  for i = 1, #record, 2 do is[record[i]] = record[i + 1] end
  local locked = is.mw_lock and is.mw_lock ~= KEYS[k]
  local queue = legacy and home(is) or KEYS[k + 2]
  if #record == 0 or not free(is, id) or (locked and (is.status == 'started'
    or not unlocked(is.mw_lock, id))) then
    dropped = dropped + 1
    return
  end
  local held, prerequisites = waits(id, key, is, queue, now, legacy)
  looked = looked + prerequisites
  if held then
    dropped = dropped + 1
    return
  end
  local attempt = (tonumber(is.mw_attempt or '') or 0) + 1
  redis.call('ZADD', LEASES, deadline, id)
  redis.call('HSET', key, 'status', 'started', 'updated_at', at, 'mw_token', token,
    'mw_worker', worker, 'mw_queue', queue, 'mw_attempt', attempt)
  if legacy then redis.call('HSET', key, 'mw_legacy', '1') end
  if is.mw_lock or is.mw_fallback or is.mw_seen then
    redis.call('HDEL', key, 'mw_lock', 'mw_seen')
    redis.pcall('ZREM', WATCH, id)
  end
  event(id, 'claim', worker)
  want = want - 1
  out[#out + 1] = {id, queue, attempt, record}
end

for k = 1, #KEYS, 3 do
  while looked < MOST and not walked do
    local id
    if want > 0 then id = redis.call('RPOP', KEYS[k + 1])
    else id = redis.pcall('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end -- newest first
    if not id or id.err then break end
    looked = looked + 1
    if want > 0 then admit(id, k) end
  end
end
for k = 1, #KEYS, 3 do
  while want > 0 and looked < MOST and not walked do
    -- A key that is no list is passed over: an error would leave what is claimed already with nobody.
    local ids = redis.pcall('RPOP', KEYS[k], math.min(want, MOST - looked))
    if not ids or ids.err then break end
    looked = looked + #ids
    for i = 1, #ids do
      if walked or looked > MOST then -- the rest goes back as it lay
        for j = #ids, i, -1 do redis.call('RPUSH', KEYS[k], ids[j]) end
        break
      end
      admit(ids[i], k)
    end
  end
end
return {dropped, (walked or looked >= MOST) and 1 or 0, out}
