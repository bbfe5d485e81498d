-- Stopping a job that no worker runs.

-- Whether none of our scripts has had to do with a job yet: where it waits, only its client knows.
local function unseen(has) return not has.mw_reply and not has.mw_queue end

-- Takes the id off the old lists that such a client may have pushed it to: old workers look at no status,
-- and would run it. Then its client waits for the reply of old, too.
local function unlist(id, key, has)
  local worker_id, of_type = worker_of(has), OLD_TYPE .. string.lower(has.script_type or '')
  for _, list in ipairs({of_type, JOB .. worker_id, OLD_WORK .. worker_id}) do
    local removed = redis.pcall('LREM', list, 0, id)
    if type(removed) == 'number' and removed > 0 then
      redis.call('HSET', key, 'mw_legacy', '1')
      has.mw_legacy = '1'
    end
  end
end

local function stop(id, key, has, reason, queue, now, by)
  redis.pcall('ZREM', DELAYED, id)
  unqueue(queue, id)
  unlock(has.mw_lock, id)
  if unseen(has) then unlist(id, key, has) end
  fault(id, key, has, reason, now, nil, by)
end
