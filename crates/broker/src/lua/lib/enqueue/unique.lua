--- @include complete/ending, queue/cancel_waiting
-- Reasons to refuse a new job: a key of its options is of another kind, or its unique name is taken. A job has a unique
-- name until it has ended, until it has started, or for a time.

-- Returns an error if a key that the job is to wait in is of another kind, before anything is written.
local function queues_usable(o)
  local fault = (o.due or o.delay) and try('ZCARD', DELAYED)
  if type(fault) ~= 'table' and o.key then
    o.seq = redis.pcall('INCR', SEQ)
    fault = type(o.seq) == 'table' and o.seq or try('ZCARD', BACKLOG_INDEX)
  end
  return type(fault) == 'table' and fault
end

-- Takes the unique name of a job, perhaps from another job. Returns the answer if another job keeps the name: the job
-- that has it decides how long.
local function taken_by(id, o, now, who)
  local name = UNIQUE .. o.unique
  local holder = try('GET', name)
  if type(holder) == 'string' and holder ~= id then
    local key = JOB .. holder
    local has, other = record(key, 'mw_lock', 'mw_stop', 'script_type', 'worker_id', 'actor_id')
    local lives = other or has.status and not final(has.status)
    -- The name of a job that has ended is kept by its window: only then it has a time to live.
    if lives or try('PEXPIRE', name, 1, 'NX') == 0 then
      if o.policy ~= 'replace' then return o.policy .. ' ' .. holder end
      if is_dispatched(has.status) then
        cancel_waiting(holder, key, has, 'replaced by ' .. id, has.mw_queue or '', now, who)
      end
    end
  end
  if o.window then redis.call('SET', name, id, 'PX', o.window) else redis.call('SET', name, id) end
end
