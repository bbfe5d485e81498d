-- Taking jobs off queues, each under a lease.
local MOST = 1000 -- ids looked at in one call
local looked, dropped, taken, leases = 0, 0, {}, {}
local ask -- what the call asks for

local function lease(id, key, queue, attempt, slot)
  redis.call('HSET', key, 'status', 'started', 'updated_at', ask.at, 'mw_token', ask.token,
    'mw_worker', ask.worker, 'mw_queue', queue, 'mw_attempt', attempt, 'mw_started', ask.since, unpack(slot or {}))
  given[id] = true
  if slot then return redis.call('ZADD', LEASES, ask.deadline, id) end
  leases[#leases + 1] = ask.deadline
  leases[#leases + 1] = id
end

local function admit(id, k, g)
  local key, is = JOB .. id, {}
  local record, legacy = redis.pcall('HGETALL', key), KEYS[k + 2] ~= KEYS[k]
  for i = 1, #record, 2 do is[record[i]] = record[i + 1] end
  local queue = legacy and home(is) or KEYS[k + 2]
  if #record == 0 or not takeable(is, id, KEYS[k]) then
    dropped = dropped + 1
    return
  end
  local waiting, prerequisites = waits(id, key, is, queue, ask.now, legacy)
  looked = looked + prerequisites
  if waiting then
    dropped = dropped + 1
    return
  end
  local slot = g and passes(g, queue, id, is, ask.now)
  if slot == false then return end
  local attempt = (tonumber(is.mw_attempt or '') or 0) + 1
  lease(id, key, queue, attempt, slot)
  if legacy then redis.call('HSET', key, 'mw_legacy', '1') end
  if is.mw_lock or is.mw_fallback or is.mw_seen then
    redis.call('HDEL', key, 'mw_lock', 'mw_seen')
    redis.pcall('ZREM', WATCH, id)
  end
  -- A key that holds others back until this one has started.
  if is.mw_unique and string.find(is.mw_unique, '^started ') then unclaim(id, is) end
  count(queue, 'started')
  event(id, 'claim', ask.worker)
  ask.want = ask.want - 1
  taken[#taken + 1] = {id, queue, attempt, record}
end

-- What came to this process meanwhile; what is more than wanted goes back to its queue.
local function from_feed(k, g)
  while looked < MOST and not walked do
    local may, id = ask.want > 0 and (not g or g.left > 0)
    if may then id = redis.call('RPOP', KEYS[k + 1])
    else id = redis.pcall('LMOVE', KEYS[k + 1], KEYS[k], 'LEFT', 'RIGHT') end -- newest first
    if not id or id.err then break end
    looked = looked + 1
    if may then admit(id, k, g) end
  end
end

local function from_queue(k, g)
  while ask.want > 0 and (not g or g.left > 0) and looked < MOST and not walked do
    -- A key that is no list is passed over: an error would leave what is claimed already with nobody.
    local ids = redis.pcall('RPOP', KEYS[k], math.min(ask.want, g and g.left or MOST, MOST - looked))
    if not ids or ids.err then break end
    looked = looked + #ids
    for i = 1, #ids do
      if walked or looked > MOST then -- the rest goes back as it lay
        for j = #ids, i, -1 do redis.call('RPUSH', KEYS[k], ids[j]) end
        break
      end
      admit(ids[i], k, g)
    end
  end
end

-- Takes for what is asked from ARGV[a] on, off the queues from KEYS[first] on.
local function take(first, a, now)
  ask = {now = now, at = iso(now), since = whole(now), want = tonumber(ARGV[a]), deadline = whole(now + tonumber(ARGV[a + 1])),
    token = ARGV[a + 2], worker = ARGV[a + 3]}
  taken_at = ask.since
  redis.call('ZCARD', LEASES) -- should it be no such set, the call ends here, before ids are taken
  for k = first, #KEYS, 3 do gate(KEYS[k + 2], now) end -- likewise
  for k = first, #KEYS, 3 do from_feed(k, gate(KEYS[k + 2], now)) end
  for k = first, #KEYS, 3 do from_queue(k, gate(KEYS[k + 2], now)) end
  if #leases > 0 then redis.call('ZADD', LEASES, unpack(leases)) end
  local held = {}
  for k = first, #KEYS, 3 do
    local g = gate(KEYS[k + 2], now)
    local ms = g and shut(g, now) or 0
    if ms > 0 then
      held[#held + 1] = (k - first) / 3 + 1
      held[#held + 1] = ms
    end
  end
  return {dropped, (walked or looked >= MOST) and 1 or 0, taken, held, ask.since}
end
