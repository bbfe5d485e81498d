--- @include enqueue/enqueue_fast, enqueue/overlap_replace
-- Fires slots of schedules: moves each schedule to its next slot and stores the jobs of the slots between, in one step,
-- unless another caller has done so. A slot whose queue refuses its job stays, and so do those after it.
-- KEYS[1..]  per schedule: its hash, the control queue of its type; then per slot of it: the job's hash, its queue
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3..]  per schedule: name, version, position, position after these slots, when it is due then ('' never, '=' as
--            before), overlap policy (allow, skip or replace), the job's timeout in ms, an error ('' for none) that
--            is noted: the slots are tried again; number of slots; per slot: its time, the job as in enqueue.lua
-- Returns per schedule the outcome of each slot: the answer of enqueue.lua, 'skipped', or why it stays; 'changed' alone
--         if the schedule has changed
local now, who = clock(ARGV[1]), ARGV[2]
local answers, k, a = {}, 1, 3
local AGAIN = 5000 -- ms until slots that stayed are tried again
local counted = {stored = 'runs', skipped = 'skipped'}

-- Returns the job of the last slot, if it has not ended; and an error if that cannot be read.
local function last_of(key)
  local id = redis.call('HGET', key, 'last')
  if not id then return end
  local has, other = slow_path().record(JOB .. id, 'mw_lock', 'mw_stop', 'mw_waiting', 'script_type', 'worker_id',
    'actor_id')
  if (has.status or '') ~= '' and not final(has.status) then return id, has end
  if other then return id, nil, {err = 'ERR its last job, ' .. id .. ', cannot be read: its key has another type'} end
end

-- Fires or skips the slot whose job is at KEYS[k]. Returns the outcome.
local function decide(key, control, overlap, timeout, id, script_type, o, from)
  local last, has, fault = last_of(key)
  if fault and overlap ~= 'allow' and last ~= id then return fault end
  if last and last ~= id and overlap == 'skip' then
    event(id, 'skip', who, last .. ' has not ended')
    return 'skipped'
  end
  local replaces = last and last ~= id and overlap == 'replace' and redis.call('EXISTS', KEYS[k]) == 0
  if replaces then
    displace(last, has, KEYS[k + 1], control, id, now, who)
    o = o or {}
    o.after, o.on_failure, o.timeout = with_its_own(last, has), 'continue', timeout
  end
  local answer = store(id, KEYS[k], KEYS[k + 1], script_type, o, from, now, who)
  -- The job runs however its prerequisites end.
  if replaces and answer == 'stored' then redis.call('HSET', KEYS[k], 'mw_on_failure', 'continue') end
  return answer
end

-- Returns why a slot stays, nothing if it does not.
local function undecided(answer)
  if type(answer) == 'table' then return answer.err end
  if answer == 'full' or answer == 'draining' then return 'its queue is ' .. answer end
end

-- Notes a slot whose job was refused: by the job with its unique name, or for its size.
local function note_refusal(key, answer)
  if counted[answer] or answer == 'exists' then return end
  redis.call('HINCRBY', key, 'refused', 1)
  redis.call('HSET', key, 'refusal', answer)
end

-- Counts a fired or skipped slot. A slot whose job existed was counted before.
local function tell(queue, answer, slot)
  if answer == 'exists' then return end
  local outcome = answer == 'stored' and 'ran' or answer == 'skipped' and 'skipped' or 'refused'
  count(queue, 'slots:' .. outcome)
  if outcome == 'ran' then count(queue, 'slots_late_ms', math.max(0, now - tonumber(slot))) end
end

while a <= #ARGV do
  local key, control, name, version, position = KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local to, next, overlap, timeout, trouble = ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]
  local has, n = read(key, 'version', 'position'), tonumber(ARGV[a + 8])
  local mine = has.version == version and (has.position or '') == position
  local outcomes, stuck, decided = mine and {} or {'changed'}, trouble ~= '' and trouble, position
  k, a = k + 2, a + 9
  for _ = 1, n do
    local slot, id, script_type, o, from, behind = ARGV[a], read_args(a + 1)
    if mine and not stuck then
      local answer = decide(key, control, overlap, timeout, id, script_type, o, from)
      stuck = undecided(answer)
      outcomes[#outcomes + 1] = stuck or answer
      if not stuck then decided = slot end
      if answer == 'stored' or answer == 'exists' then redis.call('HSET', key, 'last', id, 'slot', slot) end
      if counted[answer] then redis.call('HINCRBY', key, counted[answer], 1) end
      if not stuck then note_refusal(key, answer) end
      if not stuck and next ~= '=' then tell(KEYS[k + 1], answer, slot) end
    end
    k, a = k + 2, behind
  end
  if mine then
    redis.call('HSET', key, 'position', stuck and decided or to)
    if stuck then redis.call('HSET', key, 'trouble', stuck) else redis.call('HDEL', key, 'trouble') end
    if next == '' then next = '+inf' end
    if next ~= '=' then redis.call('ZADD', SCHEDULES, stuck and int(now + AGAIN) or next, name) end
  end
  answers[#answers + 1] = outcomes
end
push_all(now)
return respond(answers)
