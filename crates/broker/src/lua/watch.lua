--- @include legacy_rescue
--- @flags allow-oom
-- Looks after jobs to which no other script comes back: those that wait for others, those that a worker
-- without leases may have taken, and those whose worker may be away. One that stands on no list is pushed again
-- when it has been so for as long as the type's migration says, or, once started, as its timeout says too. Jobs of
-- other clients whose type does not migrate are only noted, unless they are to be rescued too.
-- KEYS
-- ARGV    1: now
--         2: most jobs in one call
--         3: most losses of one job
--         4: most list entries walked over in one call (the last walk may be longer)
--         5: the age where the type does not migrate in ms
--         6: 1 to rescue jobs of others
-- Returns how many were looked at, the ids that were pushed again
local now, most, losses = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local FAR = 2 * LONGEST_AGE -- what is due later was put there by a clock that was ahead
local READ = 50 -- to read a record costs as much as to walk over so many entries
local looked, budget = 0, tonumber(ARGV[4])
local age, rescue = math.min(tonumber(ARGV[5]), LONGEST_AGE), ARGV[6] == '1'

-- Ended by a worker that tells nobody but the record.
local function ended(id, key, has)
  unwatch(id)
  if redis.call('ZSCORE', ENDED, id) or redis.call('ZSCORE', DEAD, id) then return end
  redis.call('HDEL', key, 'mw_waiting', 'mw_expires', 'mw_token', 'mw_lock', 'mw_stop', 'mw_seen')
  redis.call('ZADD', ENDED, int(now), id)
  event(id, has.status, worker_of(has))
  if has.mw_with and more(key, has).mw_batch then leave(id, has.mw_batch, has.status == 'finished', now) end
  if redis.call('EXISTS', NEXT .. id) == 1 then defer_dependents(id, has.status == 'finished') end
end

-- A job of another client with which nobody here has anything to do: nothing is written into its record.
local function only_note(id, has, after, now)
  local ours = redis.call('ZSCORE', LEASES, id) or redis.call('ZSCORE', DELAYED, id)
  if ours or final(has.status) then return unwatch(id) end
  if has.status == 'started' then
    note_stale(id, 'started', now + timeout_of(has))
  elseif old_place(id, has) or canonical_place(id, has) or in_feed(id) or vague then
    return unwatch(id)
  elseif whole_at() >= 0 then
    note_stale(id, 'away', now)
  end
  look_later(id, now + after)
end

-- Whether it is such a job.
local function anothers(has, phase)
  local ours = has.mw_reply or has.mw_seen or has.mw_lock or has.mw_waiting or has.mw_fallback
  return not ours and (not (phase or rescue) or not has.mw_queue)
end

local function see(id)
  local key = JOB .. id
  local has = record(key, 'mw_waiting', 'mw_expires', 'mw_lock', 'mw_seen', 'mw_lost', 'mw_fallback', 'mw_stop',
    'script_type', 'worker_id', 'actor_id', 'timeout', 'updated_at')
  local _, after, phase = old_list(type_of(has), worker_of(has))
  after, bounded, vague = phase and after or age, not phase, false
  if not exists(key) then unwatch(id)
  elseif anothers(has, phase) then only_note(id, has, after, now)
  elseif final(has.status) then ended(id, key, has)
  elseif has.status == 'started' then started(id, key, has, after, now, losses)
  elseif (has.status or '') ~= '' and not is_dispatched(has.status) then look_later(id, now + after)
  elseif has.mw_waiting then walked = walked + READ * look(id, key, has, now)
  else dispatched(id, key, has, after, phase, now) end
end

for _, span in ipairs({{'-inf', int(now)}, {int(now + FAR), '+inf'}}) do
  local ids = redis.call('ZRANGEBYSCORE', WATCH, span[1], span[2], 'LIMIT', 0, most - looked)
  for _, id in ipairs(ids) do
    if walked >= budget then break end
    looked = looked + 1
    see(id)
  end
end
return respond({looked, again})
