--- @include complete/finalize, dependencies/batch_exit
-- Batches: their counts, and the callbacks that wait for their end. Open members are in a set, so each is counted once,
-- even if its end is reported more than once.
local MOST_CONCLUDED = 100 -- batches that end in one call; sweep_batches.lua ends the others
local concluded = 0

-- Returns the functions for batches. They are made on demand, since most calls have no batch.
local function batches()
  -- Returns the fields of a batch; without `total` if there is none.
  local function state(batch)
    return read(BATCHES .. batch, 'total', 'succeeded', 'failed', 'sealed', 'ended', 'cancelled', 'expired',
      'failing', 'on_done', 'on_success', 'on_failure', 'open_for', 'open_until', 'scan')
  end

  -- Returns the callback of a kind, if it still waits for its batch.
  local function callback(batch, has, kind)
    local id = has['on_' .. kind]
    local is = id and record(JOB .. id, 'mw_waiting', 'mw_callback', 'script_type', 'worker_id', 'actor_id')
    local waits = is and is.status == WAITING and is.mw_waiting and is.mw_callback == kind .. ' ' .. batch
    if waits then return id, JOB .. id, is end
  end

  -- Queues a callback, once. Its input are the counts so far.
  local function fire(batch, has, kind, now)
    local id, key, is = callback(batch, has, kind)
    if not id then return end
    local input = string.format('{"batch":"%s","why":"%s","total":%d,"succeeded":%d,"failed":%d}', batch, kind,
      tonumber(has.total), tonumber(has.succeeded), tonumber(has.failed))
    redis.call('HDEL', key, 'mw_waiting')
    redis.call('HSET', key, 'mw_input', input, updated(now))
    unwatch(id)
    event(id, 'ready', batch)
    local _, stands = deliver('LPUSH', id, key, is, is.mw_queue, now, true)
    if stands then dual_write(id, key, is.mw_queue, is.script_type, worker_of(is), now) end
  end

  -- Ends a callback that will not run: in error if there is a reason, else it is deleted.
  local function drop(batch, has, kind, why, now)
    local id, key, is = callback(batch, has, kind)
    if not id then return end
    if why then return fail_job(id, key, is, why, now, nil, batch, true, 'batch') end
    if is.mw_with and more(key, is).mw_batch then leave(id, is.mw_batch, true, now) end
    drop_job(id)
    event(id, 'unneeded', batch)
  end

  -- Ends a sealed batch whose jobs have all ended. It has failed too if a job was never counted: its entry was lost.
  local function conclude(batch, has, now)
    concluded = concluded + 1
    redis.call('HSET', BATCHES .. batch, 'ended', int(now))
    redis.call('ZREM', BATCHES_OPEN, batch)
    redis.call('ZADD', BATCHES_ENDED, int(now), batch)
    if tonumber(has.succeeded) == tonumber(has.total) and not has.expired then
      drop(batch, has, 'failure', nil, now)
      fire(batch, has, 'success', now)
    else
      drop(batch, has, 'success', 'batch ' .. batch .. ' did not succeed', now)
      fire(batch, has, 'failure', now)
    end
    fire(batch, has, 'done', now)
  end

  -- Counts the members that have ended, and fires callbacks or ends the batch.
  local function count_out(of)
    local batch, has = of.batch, state(of.batch)
    if not has.total or has.ended then return end
    for _, how in ipairs({'succeeded', 'failed'}) do
      local gone = #of[how] > 0 and try('SREM', MEMBERS .. batch, unpack(of[how])) or 0
      if type(gone) == 'number' and gone > 0 then has[how] = redis.call('HINCRBY', BATCHES .. batch, how, gone) end
    end
    if tonumber(has.failed) > 0 and not has.failing then
      has.failing = of.failed[1]
      redis.call('HSET', BATCHES .. batch, 'failing', has.failing)
      fire(batch, has, 'failure', of.now)
    end
    if not has.sealed or redis.call('EXISTS', MEMBERS .. batch) == 1 then return end
    if concluded < MOST_CONCLUDED then conclude(batch, has, of.now)
    else redis.call('ZADD', BATCHES_OPEN, int(of.now), batch) end
  end

  return {state = state, fire = fire, drop = drop, count_out = count_out}
end

last = function()
  local count_out = leaving[1] and batches().count_out
  for _, of in ipairs(leaving) do -- grows while callbacks of other batches end
    leaving[of.batch] = nil
    count_out(of)
  end
end
