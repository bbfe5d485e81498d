--- @include telemetry, reply, write_error, claim/fair_keys, record_queues, dual_write, enqueue/drop_job, bananas_result, flow_end, message_end
-- The end of a job, whichever verb ended it; and the way of a job into its queue.
local MOST_NOTIFIED = 100 -- dependents notified in the call that ends a job; resolve_dependents.lua notifies the others
local notify_dependents, leave, note_outcome -- leave: a job ends for its batch; note_outcome: for an alert

-- Reads the fields that every script needs of a job that it ends or queues; `more` reads the others.
local function record(key, ...)
  return only_own(key, read(key, 'status', 'mw_queue', 'mw_reply', 'mw_legacy', 'mw_with', ...))
end

-- Frees the unique name of a job.
local function unclaim(id, has)
  local name = string.match(has.mw_unique or '', '^%a+ (.+)$')
  if name and try('GET', UNIQUE .. name) == id then redis.call('DEL', UNIQUE .. name) end
end

-- Completes an end that is in the record. `dead`: reason of a dead letter; `later`: resolve_dependents.lua notifies the dependents.
local function finalize(id, key, has, status, payload, now, dead, by, later)
  if has.mw_with and more(key, has).mw_flow and end_in_flow(has, status, now) then dead = nil elseif dead then
    try('ZADD', DEAD, int(now), id)
    redis.call('HSET', key, 'mw_dead', dead)
    count(has.mw_queue, 'dead')
  else
    note_end(id, now)
  end
  count(has.mw_queue, status == 'finished' and 'finished' or 'failed')
  if has.mw_with then
    unclaim(id, more(key, has))
    if has.mw_alert then note_outcome(id, has.mw_alert, status == 'finished', dead, payload, now) end
    if has.mw_batch then leave(id, has.mw_batch, status == 'finished', now) end
    if has.mw_bananas then tell_bananas(id, key, status == 'finished', payload, now) end
  end
  mark_message(key)
  reply(has, id, payload)
  event(id, status, by, dead)
  if redis.call('EXISTS', DEPENDENTS .. id) == 0 then return end
  if later then defer_dependents(id, status == 'finished')
  else notify_dependents(id, status == 'finished', now, MOST_NOTIFIED) end
end

-- Ends a job that no worker runs in error; `kind` is the kind of error, for statistics.
local function fail_job(id, key, has, message, now, dead, by, later, kind)
  unwatch(id)
  redis.call('HDEL', key, 'mw_waiting', 'mw_expires', 'mw_token', 'mw_lock', 'mw_stop', 'mw_seen')
  write_error(key, 'error', message, now)
  if has.mw_with then drop_slot(has.mw_queue, id, more(key, has)) end
  count(has.mw_queue, 'error:' .. (kind or 'stopped'))
  finalize(id, key, has, 'error', message, now, dead, by, later)
end

-- Puts the id of a job that may run into its queue (LPUSH: at the end, RPUSH: at the front), among the delayed jobs, or
-- into the backlog of its key. Returns true for success (else the job has ended in error), and true if it is queued.
local function deliver(how, id, key, has, queue, now, later)
  if has.mw_with then
    local due = tonumber(more(key, has).mw_run_at or '')
    if due and due > now then return type(try('ZADD', DELAYED, int(due), id)) == 'number' end
    if how == 'RPUSH' then note_head(queue, id, has) elseif not try_enter(queue, id, has, now) then return true end
  end
  local own = own_queue(queue or '')
  if own and pushed(how, queue, id) then
    track_fallback(id, key, now)
    return true, true
  end
  local why = own and 'the key of its queue, ' .. queue .. ', is no list' or 'its record names no queue and no type'
  fail_job(id, key, has, why, now, 'queue', '', later, 'queue')
end

-- Notifies up to `most` dependents of an ended job, if they still wait for it. Returns the number of visited ones.
notify_dependents = function(id, finished, now, most)
  local children = try('LPOP', DEPENDENTS .. id, most) or {}
  if children.err then return 0 end
  for _, child in ipairs(children) do
    local key = JOB .. child
    local has = record(key, 'mw_waiting', 'mw_on_failure', 'script_type', 'worker_id', 'actor_id')
    local from, to = string.find(has.mw_waiting or '', '"' .. id .. '"', 1, true)
    if has.status == WAITING and from then
      local left = string.sub(has.mw_waiting, 1, from - 1) .. string.sub(has.mw_waiting, to + 1)
      if not finished and has.mw_on_failure ~= 'continue' then
        fail_job(child, key, has, 'prerequisite ' .. id .. ' did not finish', now, nil, id, true, 'prerequisite')
      elseif string.find(left, '"', 1, true) then
        redis.call('HSET', key, 'mw_waiting', left)
      else
        redis.call('HDEL', key, 'mw_waiting', 'mw_expires')
        redis.call('HSET', key, updated(now))
        try('ZREM', WATCHED, child)
        event(child, 'ready', id)
        local _, stands = deliver('LPUSH', child, key, has, has.mw_queue, now, true)
        if stands then
          dual_write(child, key, has.mw_queue, has.script_type, worker_of(has), now)
        end
      end
    end
  end
  if redis.call('EXISTS', DEPENDENTS .. id) == 1 then defer_dependents(id, finished) end
  return #children
end
