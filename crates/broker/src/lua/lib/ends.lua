-- What follows when a job has ended, whichever verb ended it, and when it may run.
local MOST_TOLD = 100 -- dependants told in the call that ends a job; the rest is for settle

-- Whether the id could be pushed; a key that is no list takes none, and must not end the script half way.
local function pushed(how, queue, id)
  return type(redis.pcall(how, queue, id)) == 'number'
end

-- The old list of a job while its type migrates, and after how many ms one looks again.
local function old_list(script_type, worker_id)
  local setting = redis.call('HGET', CONFIG, 'migration:' .. (script_type or ''))
  if not setting then return nil, WATCH_AFTER end
  local list, after = string.match(setting, '^%S+ (%S+) (%d+)')
  local from, to = string.find(list, '{worker_id}', 1, true)
  if from then
    if (worker_id or '') == '' then return nil, tonumber(after) end
    list = string.sub(list, 1, from - 1) .. worker_id .. string.sub(list, to + 1)
  end
  return list, tonumber(after)
end

-- During a migration, pushes the id to the old list of its type too. The old list is then the lock: who
-- takes the id off it has the job.
local function double(id, key, queue, script_type, worker_id, now)
  local list, after = old_list(script_type, worker_id)
  if not list or not pushed('LPUSH', list, id) then return end
  redis.call('HSET', key, 'mw_lock', list, 'mw_queue', queue)
  redis.call('ZADD', WATCH, whole(now + after), id)
  return true
end

local advance

-- What is common to all ends; status, error and output are in the record already. `dead` says why a job
-- is a dead letter. The dependants of a job that ended with another are left to settle.
local function close(id, key, has, status, payload, now, dead, by, later)
  redis.call('ZADD', dead and DEAD or ENDED, whole(now), id)
  if dead then redis.call('HSET', key, 'mw_dead', dead) end
  reply(has, id, payload)
  event(id, status, by, dead)
  if redis.call('EXISTS', NEXT .. id) == 0 then return end
  if later then redis.call('RPUSH', SETTLE, id)
  else advance(id, status == 'finished', now, MOST_TOLD) end
end

-- Ends a job that no worker holds in error.
local function fault(id, key, has, message, now, dead, by, later)
  redis.call('ZREM', WATCH, id)
  redis.call('HDEL', key, 'mw_waiting', 'mw_expires', 'mw_token', 'mw_lock', 'mw_stop')
  redis.call('HSET', key, 'status', 'error', 'error', message, 'updated_at', iso(now))
  close(id, key, has, 'error', message, now, dead, by, later)
end

-- Puts the id of a job that may run into its queue: `how` is LPUSH for the end, RPUSH for the front.
local function deliver(how, id, key, has, queue, now, later)
  if pushed(how, queue, id) then return true end
  fault(id, key, has, 'the key of its queue, ' .. queue .. ', is no list', now, 'queue', '', later)
end

-- Tells up to `most` of the jobs that wait for `id` whether it finished. Returns how many it told.
advance = function(id, finished, now, most)
  local children = redis.call('LPOP', NEXT .. id, most) or {}
  for _, child in ipairs(children) do
    local key = JOB .. child
    local has = read(key, 'status', 'mw_waiting', 'mw_on_failure', 'mw_queue', 'mw_reply', 'mw_legacy',
      'script_type', 'worker_id')
    if has.status == 'dispatched' and has.mw_waiting then
      if not finished and has.mw_on_failure ~= 'continue' then
        fault(child, key, has, 'prerequisite ' .. id .. ' did not finish', now, nil, id, true)
      elseif redis.call('HINCRBY', key, 'mw_waiting', -1) <= 0 then
        redis.call('HDEL', key, 'mw_waiting', 'mw_expires')
        redis.call('HSET', key, 'updated_at', iso(now))
        redis.call('ZREM', WATCH, child)
        event(child, 'ready', id)
        if deliver('LPUSH', child, key, has, has.mw_queue or '', now, true) then
          double(child, key, has.mw_queue, has.script_type, has.worker_id, now)
        end
      end
    end
  end
  if redis.call('EXISTS', NEXT .. id) == 1 then redis.call('RPUSH', SETTLE, id) end
  return #children
end
