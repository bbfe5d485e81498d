--- @include ending, cancel_waiting
-- What a job wishes for may keep it from being stored: a place to wait in that is not there, or a unique name,
-- which one job has until it is done, until it has started, or for a while.

-- Whether what it is to wait in is there; an error if it is not, before anything of the job is written.
local function queues_usable(o)
  local fault = (o.due or o.delay) and redis.pcall('ZCARD', DELAYED)
  if type(fault) ~= 'table' and o.key then
    o.seq = redis.pcall('INCR', SEQ)
    fault = type(o.seq) == 'table' and o.seq or redis.pcall('ZCARD', HELD)
  end
  return type(fault) == 'table' and fault
end

-- Why a job is not stored since another has its key; nil if it takes the key, perhaps from another.
local function taken_by(id, o, now, who)
  local name = UNIQUE .. o.unique
  local holder = redis.pcall('GET', name)
  if type(holder) == 'string' and holder ~= id then
    local key = JOB .. holder
    local has = record(key, 'mw_lock', 'mw_stop', 'script_type', 'worker_id', 'actor_id')
    local lives = has.status and not final(has.status)
    if lives or o.window then
      if o.policy ~= 'replace' then return o.policy .. ' ' .. holder end
      if is_dispatched(has.status) then
        cancel_waiting(holder, key, has, 'replaced by ' .. id, has.mw_queue or '', now, who)
      end
    end
  end
  if o.window then redis.call('SET', name, id, 'PX', o.window) else redis.call('SET', name, id) end
end
