--- @include finalize, batch_exit
-- How batches stand, and the callbacks that wait for them to end. Who is still to end stands in a set, so that
-- each is counted out once, whoever says it and however often.
local MOST_CONCLUDED = 100 -- batches that end in one call; the rest is for tend
local concluded = 0

-- What there is to do with batches; made where it is needed, since most calls have nothing to do with any.
local function batches()
  -- What there is of a batch; no total if there is none.
  local function state(batch)
    return read(BATCHES .. batch, 'total', 'succeeded', 'failed', 'sealed', 'ended', 'cancelled', 'expired',
      'failing', 'on_done', 'on_success', 'on_failure', 'open_for', 'open_until', 'scan')
  end

  -- The callback of a kind, if it still waits for its batch.
  local function callback(batch, has, kind)
    local id = has['on_' .. kind]
    local is = id and record(JOB .. id, 'mw_waiting', 'mw_callback', 'script_type', 'worker_id', 'actor_id')
    local waits = is and is.status == WAITING and is.mw_waiting and is.mw_callback == kind .. ' ' .. batch
    if waits then return id, JOB .. id, is end
  end

  -- Lets a callback run, once: it waits no more then. The counts so far are its input.
  local function fire(batch, has, kind, now)
    local id, key, is = callback(batch, has, kind)
    if not id then return end
    local input = string.format('{"batch":"%s","why":"%s","total":%d,"succeeded":%d,"failed":%d}', batch, kind,
      tonumber(has.total), tonumber(has.succeeded), tonumber(has.failed))
    redis.call('HDEL', key, 'mw_waiting')
    redis.call('HSET', key, 'updated_at', stamp(now), 'mw_input', input)
    event(id, 'ready', batch)
    local _, stands = deliver('LPUSH', id, key, is, is.mw_queue, now, true)
    if stands then dual_write(id, key, is.mw_queue, is.script_type, worker_of(is), now) end
  end

  -- Ends a callback that will not run: in error, or without a trace where nothing went wrong.
  local function drop(batch, has, kind, why, now)
    local id, key, is = callback(batch, has, kind)
    if not id then return end
    if why then return fail_job(id, key, is, why, now, nil, batch, true, 'batch') end
    if is.mw_with and more(key, is).mw_batch then leave(id, is.mw_batch, true, now) end
    drop_job(id)
    event(id, 'unneeded', batch)
  end

  -- All jobs of a sealed batch have ended.
  local function conclude(batch, has, now)
    concluded = concluded + 1
    redis.call('HSET', BATCHES .. batch, 'ended', int(now))
    redis.call('ZREM', BATCHES_OPEN, batch)
    redis.call('ZADD', BATCHES_ENDED, int(now), batch)
    if tonumber(has.failed) > 0 or has.expired then
      drop(batch, has, 'success', 'batch ' .. batch .. ' did not succeed', now)
    else
      drop(batch, has, 'failure', nil, now)
      fire(batch, has, 'success', now)
    end
    fire(batch, has, 'done', now)
  end

  -- Counts out who has left, and does what follows.
  local function count_out(of)
    local batch, has = of.batch, state(of.batch)
    if not has.total or has.ended then return end
    for _, how in ipairs({'succeeded', 'failed'}) do
      local gone = #of[how] > 0 and redis.pcall('SREM', MEMBERS .. batch, unpack(of[how])) or 0
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
  for _, of in ipairs(leaving) do -- grows while callbacks end that belong to other batches
    leaving[of.batch] = nil
    count_out(of)
  end
end
