--- @include bananas, admission
--- @flags allow-oom
-- Takes ids off Bananas' lists, list by list, as many as the limits of their routes leave, each under a lease and a
-- token of ours, and lists them among those that run. What the job is, the caller finds out: no script reads a record.
-- KEYS    per list: the list, this process' feed list for it
-- ARGV    now, most, lease in ms, token
-- Returns per job: under what it is held, place of its list from 1, workers lost so far, what its record is, its record, when it was done
--         if its result says that it is; the number of ids that ours run already, 1 if there may be more, the time;
--         per list whose route is held back: its place, for how many ms
local MOST = 1000 -- ids looked at in one call
local MOST_BYTES = 8388608 -- of records in one answer
local now, want = clock(ARGV[1]), tonumber(ARGV[2])
local deadline = int(now + tonumber(ARGV[3]))
local taken, dropped, looked, bytes, started, gate_of, held = {}, 0, 0, 0, {}, {}, {}
-- Should one be of another kind, the call ends here, before ids are taken.
redis.call('ZCARD', LEASES)
redis.call('HLEN', HELD)

local function admit(id, k)
  local hold = id ~= '' and id or ' ' .. ARGV[4] .. '.' .. #taken
  if redis.call('HEXISTS', HELD, hold) == 1 then
    dropped = dropped + 1
    return
  end
  local state, record = look(id)
  redis.call('HSET', HELD, hold, ARGV[4] .. ' ' .. KEYS[k])
  redis.call('ZADD', LEASES, deadline, hold)
  redis.pcall('ZADD', SLOTS .. route_of(KEYS[k]), int(now), hold)
  redis.pcall('LPUSH', PROCESSING, id)
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
  -- What came to this process meanwhile; what is more than wanted goes back, the newest first.
  while looked < MOST do
    local may, id = more(k)
    if may then id = redis.call('RPOP', KEYS[k + 1])
    else id = redis.pcall('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end
    if not id or id.err then break end
    looked = looked + 1
    if may then admit(id, k) end
  end
end
for k = 1, #KEYS, 2 do
  while more(k) do
    local id = redis.pcall('RPOP', KEYS[k])
    if not id or id.err then break end -- a key that is no list is passed over
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
