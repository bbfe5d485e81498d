--- @include protocols/bananas, claim/admission
--- @flags allow-oom
-- Claims jobs off Bananas' lists, list by list and within the limits of their routes, each under a lease and a fencing
-- token, and adds them to PROCESSING. The caller reads the records.
-- KEYS[1..]  per list: the list, the worker's prefetch list of it
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    most jobs to claim
-- ARGV[3]    the lease in ms
-- ARGV[4]    the fencing token
-- Returns [1]  per job: lease id, position of its list from 1, losses so far, state of its record (`look_at`), record,
--              when it was completed ('' if its result does not say so)
--         [2]  the number of ids dropped, since workers of this system run them already
--         [3]  1 if ids may be left because the call reached a limit
--         [4]  the time in ms
--         [5]  per list whose route is blocked: its position, for how many ms
local MOST = 1000 -- ids visited in one call
local MOST_BYTES = 8388608 -- of records in one answer
local now, want = clock(ARGV[1]), tonumber(ARGV[2])
local deadline = int(now + tonumber(ARGV[3]))
local taken, dropped, looked, bytes, started, gate_of, held = {}, 0, 0, 0, {}, {}, {}
-- Ends the call if a key is of another kind, before ids are popped.
redis.call('ZCARD', LEASES)
redis.call('HLEN', CLAIMS)

local function admit(id, k)
  local hold = id ~= '' and id or ' ' .. ARGV[4] .. '.' .. #taken
  if redis.call('HEXISTS', CLAIMS, hold) == 1 then
    dropped = dropped + 1
    return
  end
  local state, record = look(id)
  redis.call('HSET', CLAIMS, hold, ARGV[4] .. ' ' .. KEYS[k])
  redis.call('ZADD', LEASES, deadline, hold)
  try('ZADD', SLOTS .. route_of(KEYS[k]), int(now), hold)
  try('LPUSH', PROCESSING, id)
  local g = gate_of[k]
  if g then g.left, g.spent = g.left - 1, g.spent + 1 end
  started[k] = (started[k] or 0) + 1
  want = want - 1
  bytes = bytes + #record
  local lost = tonumber(redis.call('GET', LOST .. id) or '') or 0
  taken[#taken + 1] = {hold, (k + 1) / 2, lost, state, record, done_at(id)}
end

local function more(k)
  local g = gate_of[k]
  return want > 0 and (not g or g.left > 0) and looked < MOST and bytes < MOST_BYTES
end

for k = 1, #KEYS, 2 do gate_of[k] = gate(route_of(KEYS[k]), now) end
for k = 1, #KEYS, 2 do
  -- Prefetched ids; those beyond the wanted number return to their list, the newest first.
  while looked < MOST do
    local may, id = more(k)
    if may then id = redis.call('RPOP', KEYS[k + 1])
    else id = try('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end
    if not id or id.err then break end
    looked = looked + 1
    if may then admit(id, k) end
  end
end
for k = 1, #KEYS, 2 do
  while more(k) do
    local id = try('RPOP', KEYS[k])
    if not id or id.err then break end -- a key that is no list is skipped
    looked = looked + 1
    admit(id, k)
  end
end
for k = 1, #KEYS, 2 do
  if started[k] then count(KEYS[k], 'started', started[k]) end
  local ms = gate_of[k] and blocked_for(gate_of[k], now) or 0
  if ms > 0 then
    held[#held + 1] = (k + 1) / 2
    held[#held + 1] = ms
  end
end
return {taken, dropped, (looked >= MOST or bytes >= MOST_BYTES) and 1 or 0, int(now), held}
