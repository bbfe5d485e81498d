--- @include telemetry, plain_record
--- @lazy claim/claim_lists gives claim_slow, claim_each
-- Claims jobs on the fast path: jobs without options, in a namespace without settings. claim_slow.lua claims others.
local MOST = 1000 -- ids visited in one call
local NO_SLOT = {}
local looked, dropped, taken, leases, walked = 0, 0, {}, {}, false
local given = {} -- ids that this call has leased: an id may be listed twice
local ask -- the request of this call
local unclaimed -- the error of a right that is missing for the slow path: the ids return to their lists

-- Returns the k-th list.
local function list(k) return KEYS[ask.lists + k] end

local function lease(id, key, queue, attempt, slot)
  redis.call('HSET', key, 'status', 'started', 'mw_token', ask.token,
    'mw_worker', ask.worker, 'mw_queue', queue, 'mw_attempt', attempt, 'mw_started', ask.since,
    updated(ask.now, unpack(slot or NO_SLOT)))
  given[id] = true
  if slot then return redis.call('ZADD', LEASES, ask.deadline, id) end
  leases[#leases + 1] = ask.deadline
  leases[#leases + 1] = id
end

-- Adds a leased job to the answer. `form`: "values" for a plain record, "fields" for one with names and values.
local function respond_with(form, id, queue, attempt, record)
  count(queue, 'started')
  event(id, 'claim', ask.worker)
  ask.want = ask.want - 1
  taken[#taken + 1] = {form, id, queue, attempt, record}
end

-- Claims ids that were popped off `from`, which is list k or its prefetch list.
local function claim_ids(ids, from, k, g)
  looked = looked + #ids
  for i = 1, #ids do
    local id, key, over = ids[i], JOB .. ids[i], walked or looked > MOST
    local record = not (over or g or ask.homes[k]) and plain_record(key)
    if not (over or record) then unclaimed = slow_denied() end
    if over or unclaimed then -- the others return in their order
      for j = #ids, i, -1 do redis.call('RPUSH', from, ids[j]) end
      walked = true
      break
    elseif record then
      lease(id, key, list(k), '1') -- no number, which Redis would format
      respond_with('values', id, list(k), 1, record)
    else
      slow_path().claim_slow(id, k, g)
    end
  end
end

-- Pops off n lists from KEYS[from] on, in their order; `places` has their positions if they are prefetch lists. Returns
-- false if a key is no list: each list is popped by itself then.
local function sweep(from, n, places)
  local call = {unpack(KEYS, from, from + n - 1)}
  call[n + 1], call[n + 2] = 'RIGHT', 'COUNT'
  while n > 0 and ask.want > 0 and looked < MOST and not walked do
    call[n + 3] = math.min(ask.want, MOST - looked)
    local popped = try('LMPOP', n, unpack(call))
    if not popped then break end
    if popped.err then return false end
    local k = 1
    while call[k] ~= popped[1] do k = k + 1 end
    claim_ids(popped[2], popped[1], places and places[k] or k)
  end
  return true
end

-- Claims by the arguments from ARGV[a] on, off the lists from KEYS[first] on (see claim.lua).
local function claim(first, a, now)
  local n, places, homes, held = tonumber(ARGV[a + 5]), {}, {}, {}
  for i = 1, n do places[i] = tonumber(ARGV[a + 5 + i]) end
  for i = a + 6 + n, #ARGV, 2 do homes[tonumber(ARGV[i])] = ARGV[i + 1] end
  ask = {now = now, since = int(now), want = tonumber(ARGV[a]), ahead = tonumber(ARGV[a + 1]) or MOST,
    arrived = ARGV[a + 1] == 'arrived', deadline = int(now + tonumber(ARGV[a + 2])), token = ARGV[a + 3], worker = ARGV[a + 4],
    feeds = first - 1, places = places, lists = first - 1 + n, homes = homes}
  taken_at = ask.since
  redis.call('ZCARD', LEASES) -- ends the call if the key is no such set, before ids are popped
  local free = redis.call('EXISTS', CONFIG) == 0 and sweep(first, n, places)
  -- Prefetched ids beyond `want` return to their queues.
  local back = free and ask.want == 0 and n > 0 and redis.call('EXISTS', unpack(KEYS, first, first + n - 1)) > 0
  if not unclaimed and (not free or back or not (ask.arrived or sweep(first + n, #KEYS - ask.lists))) then
    unclaimed = slow_denied()
    if not unclaimed then held = slow_path().claim_each() end
  end
  if #leases > 0 then redis.call('ZADD', LEASES, unpack(leases)) end
  if unclaimed and #taken == 0 then return unclaimed end
  local more = walked or looked >= MOST or ask.arrived and redis.call('EXISTS', unpack(KEYS)) > 0
  return {dropped, more and 1 or 0, taken, held, ask.since}
end
