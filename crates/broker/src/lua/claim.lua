-- Takes up to `want` jobs off the queues, in their order, each under a lease with a fencing token.
-- What the process' own feed lists hold comes first; what is more than wanted goes back to its queue.
-- KEYS    leases; then per queue, in order: the queue, this process' feed list for it
-- ARGV    now, want, lease in ms, token, worker, prefix of job hashes
-- Returns number of ids dropped, 1 if ids may be left behind because the script had done enough;
--         then per job: id, index of its queue from 0, attempt, record
local now = clock(ARGV[1])
local want, token, worker, prefix = tonumber(ARGV[2]), ARGV[4], ARGV[5], ARGV[6]
local at, deadline = iso(now), whole(now + tonumber(ARGV[3]))
local MOST = 1000 -- ids looked at in one call
local looked, dropped, out = 0, 0, {}

-- Whether the job is there to be run: not ended, and in nobody's hands. `started` without a lease is what
-- a worker without leases left, and somebody has pushed it again.
local function free(status, id)
  return status == nil or status == '' or status == 'dispatched'
    or (status == 'started' and not redis.call('ZSCORE', KEYS[1], id))
end

local function admit(id, k)
  local key = prefix .. id
  local record = redis.pcall('HGETALL', key)
  local status, attempt
  if #record == 0 then dropped = dropped + 1 return end
  for i = 1, #record, 2 do
    if record[i] == 'status' then status = record[i + 1]
    elseif record[i] == 'mw_attempt' then attempt = record[i + 1] end
  end
  if not free(status, id) then dropped = dropped + 1 return end
  attempt = (tonumber(attempt) or 0) + 1
  redis.call('ZADD', KEYS[1], deadline, id)
  redis.call('HSET', key, 'status', 'started', 'updated_at', at, 'mw_token', token,
    'mw_worker', worker, 'mw_queue', KEYS[k], 'mw_attempt', attempt)
  want = want - 1
  out[#out + 1] = {id, (k - 2) / 2, attempt, record}
end

for k = 2, #KEYS, 2 do
  while looked < MOST do
    local id
    if want > 0 then id = redis.call('RPOP', KEYS[k + 1])
    else id = redis.call('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end -- newest first
    if not id then break end
    looked = looked + 1
    if want > 0 then admit(id, k) end
  end
end
for k = 2, #KEYS, 2 do
  while want > 0 and looked < MOST do
    -- A key that is no list is passed over: an error would leave what is claimed already with nobody.
    local ids = redis.pcall('RPOP', KEYS[k], math.min(want, MOST - looked))
    if not ids or ids.err then break end
    looked = looked + #ids
    for _, id in ipairs(ids) do admit(id, k) end
  end
end
return {dropped, looked >= MOST and 1 or 0, out}
