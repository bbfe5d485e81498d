--- @include claim/claim_fast, dependencies/dependencies, claim/admission, claim/claimable, claim/foreign_records, flow_end
-- Claims jobs on the slow path: jobs with options, of foreign clients, or that ran before; and off limited queues.

-- Returns true if the end of the run has more to write than usual: see complete_fast.lua.
local function marked(is, attempt) return is.error or is.mw_stop or is.mw_lost or attempt ~= 1 end

-- Takes the slots of a job. Returns the fields that note them; false if the job went to the backlog of its key.
local function admit_job(g, queue, id, is, now)
  local set, key, name = g.set, is.mw_key, is.mw_key and member(g.set.base, is.mw_key)
  if key then redis.call('ZREM', HEADS .. member(queue, key), id) end
  local left, state = INFINITE
  if key and set.key_concurrency then
    left = room(name, set.key_concurrency)
    if left <= 0 then return set_aside(queue, key, id, is, now + LOOK_EVERY) or false end
  end
  if key and set.key_rate then
    local may, wait
    may, wait, state = allowance(set.key_rate, name, now)
    if may < 1 then return set_aside(queue, key, id, is, now + wait) or false end
  end
  if key and not set.fair and is_behind(queue, key, is) then return set_aside(queue, key, id, is, now) or false end
  if state then spend(name, state, 1) end
  g.left, g.spent = g.left - 1, g.spent + 1
  -- The next job of the key enters now; after the last slot, it enters when a slot is freed.
  if key and set.fair and left > 1 then forward('LPUSH', queue, key, turns(queue, key, set)) end
  if set.concurrency then try('ZADD', SLOTS .. set.base, int(now), id) end
  if key and set.key_concurrency then try('ZADD', SLOTS .. name, int(now), id) end
  local notes = {}
  if set.concurrency or (key and set.key_concurrency) then notes = {'mw_slot', set.base, 'mw_with', '1'} end
  if set.alert and not is.mw_alert_of then notes = {'mw_alert', set.base, 'mw_with', '1', unpack(notes)} end
  return notes
end

local function claim_slow(id, k, g)
  if not names_job(id) then
    event(id, 'drop', ask.worker, 'no key of a job of this context')
    dropped = dropped + 1
    return
  end
  local key, is = JOB .. id, {}
  local record, legacy = try('HGETALL', key), ask.homes[k]
  for i = 1, #record, 2 do is[record[i]] = record[i + 1] end
  only_own(key, is)
  local queue = legacy and (canonical_queue(is) or legacy) or list(k)
  if skip(id, key, is, list(k), queue, legacy) then
    dropped = dropped + 1
    return
  end
  local waiting, prerequisites = waits(id, key, is, queue, ask.now, legacy)
  looked = looked + prerequisites
  if waiting or await_second_push(is, id, key, list(k), queue, legacy) or fail_late(is, id, key) then
    dropped = dropped + 1
    return
  end
  local slot = g and admit_job(g, queue, id, is, ask.now)
  if slot == false then return end
  local attempt = (tonumber(is.mw_attempt or '') or 0) + 1
  lease(id, key, queue, attempt, slot)
  if legacy then redis.call('HSET', key, 'mw_legacy', '1') end
  if is.mw_flow then start_in_flow(is.mw_flow, ask.now) end
  if marked(is, attempt) then redis.call('HSET', key, 'mw_with', '1') end
  if is.mw_lock or is.mw_fallback or is.mw_seen or is.mw_start_by or not is.mw_reply then note_begun(id, key) end
  if is.mw_unique and string.find(is.mw_unique, '^started ') then unclaim(id, is) end -- others may take the key now
  respond_with('fields', id, queue, attempt, record)
end
