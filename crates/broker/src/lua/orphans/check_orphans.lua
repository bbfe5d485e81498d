--- @include orphans/check, orphans/rule, claim/expire_starts
--- @flags allow-oom
-- Watches jobs to which no other script returns: those with prerequisites, those that a foreign worker may have taken,
-- and those whose worker may be away. A job that no list holds is pushed again after the age of its type's migration,
-- and a started one after its timeout too. Jobs of foreign clients whose type does not migrate are only noted as stale.
-- Also ends jobs whose start timeout is over.
-- KEYS     none
-- ARGV[1]  the time in ms, '0' for the server's clock
-- ARGV[2]  most jobs in one call
-- ARGV[3]  the losses with which a job is a dead letter
-- ARGV[4]  most list entries searched in one call (the last search may exceed it)
-- ARGV[5]  the age in ms where the type does not migrate
-- ARGV[6]  1 to rescue jobs of foreign clients too
-- Returns [1]  the number of jobs visited
--         [2]  the ids pushed again
--         [3]  1 if the call reached a bound: there may be more
local now, most, losses = clock(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local FAR = 2 * LONGEST_AGE -- a later due time was written by a clock that was ahead
local READ = 50 -- the cost of reading a record, in list entries
local looked, budget, cut = 0, tonumber(ARGV[4]), false
local age, rescue = rescue_rule(tonumber(ARGV[5]), ARGV[6] == '1', now)

-- Finishes the end of a job that a worker without leases wrote to the record only, or whose entry in its set was lost.
local function ended(id, key, has)
  unwatch(id)
  if redis.call('ZSCORE', ENDED, id) or redis.call('ZSCORE', DEAD, id) then return end
  redis.call('HDEL', key, 'mw_waiting', 'mw_expires', 'mw_token', 'mw_lock', 'mw_stop', 'mw_seen')
  redis.call('ZADD', has.mw_dead and DEAD or ENDED, int(now), id)
  event(id, has.status, worker_of(has))
  if has.mw_with and more(key, has).mw_batch then leave(id, has.mw_batch, has.status == 'finished', now) end
  if redis.call('EXISTS', DEPENDENTS .. id) == 1 then defer_dependents(id, has.status == 'finished') end
end

-- Notes a foreign job as stale, and writes nothing into its record.
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

-- Returns true for a foreign job that is only noted.
local function anothers(has, phase)
  local ours = has.mw_reply or has.mw_seen or has.mw_lock or has.mw_waiting or has.mw_fallback
  return not ours and (not (phase or rescue) or not has.mw_queue)
end

local function see(id)
  local key = JOB .. id
  local has, other = record(key, 'mw_waiting', 'mw_expires', 'mw_lock', 'mw_seen', 'mw_lost', 'mw_fallback', 'mw_stop',
    'mw_dead', 'script_type', 'worker_id', 'actor_id', 'timeout', 'updated_at')
  local _, after, phase = old_list(type_of(has), worker_of(has))
  after, bounded, vague = phase and after or age, not (phase or rescue), false
  if other then look_later(id, now + after)
  elseif not has.status then unwatch(id)
  elseif anothers(has, phase) then only_note(id, has, after, now)
  elseif final(has.status) then ended(id, key, has)
  elseif has.status == 'started' then started(id, key, has, after, now, losses)
  elseif (has.status or '') ~= '' and not is_dispatched(has.status) then look_later(id, now + after)
  elseif has.mw_waiting then walked = walked + READ * look(id, key, has, now)
  else dispatched(id, key, has, after, phase, now) end
end

for _, span in ipairs({{'-inf', int(now)}, {int(now + FAR), '+inf'}}) do
  local ids = redis.call('ZRANGEBYSCORE', WATCHED, span[1], span[2], 'LIMIT', 0, most - looked)
  for _, id in ipairs(ids) do
    if walked >= budget then
      cut = true
      break
    end
    looked = looked + 1
    see(id)
  end
end
looked = looked + expire_starts(now, most - looked)
return respond({looked, again, (cut or looked >= most) and 1 or 0})
