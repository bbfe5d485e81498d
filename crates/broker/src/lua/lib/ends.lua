-- What follows when a job has ended, whichever verb ended it, and when it may run.
local MOST_TOLD = 100 -- dependants told in the call that ends a job; the rest is for settle

-- The old list of a job while its type migrates, after how many ms one looks again, and the phase.
local LONGEST_AGE = 3600000 -- ms
local function old_list(script_type, worker_id)
  local name = 'migration:' .. (script_type or '')
  local low = string.lower(name) -- old clients write it as they like
  local set = read(CONFIG, name, low)
  local phase, list, after = string.match(set[name] or set[low] or '', '^(%S+) (%S+) (%d+)')
  if not phase then return nil, WATCH_AFTER end
  after = math.min(tonumber(after), LONGEST_AGE)
  local from, to = string.find(list, '{worker_id}', 1, true)
  if from and (worker_id or '') == '' then return nil, after, phase end
  if from then list = string.sub(list, 1, from - 1) .. worker_id .. string.sub(list, to + 1) end
  return list, after, phase
end

-- During a migration, pushes the id to the old list of its type too. The old list is then the lock: who
-- takes the id off it has the job. Where any worker of the type takes from that list, a job for a group or
-- an instance is not for it.
local function double(id, key, queue, script_type, worker_id, now)
  local list, after, phase = old_list(script_type, worker_id)
  local own = ':' .. (worker_id or '')
  local pinned = string.find(queue or '', ':group:', 1, true)
  if pinned and (own == ':' or string.sub(list or '', -#own) ~= own) then return end
  if not list or list == queue or phase == 'closing' or not pushed('LPUSH', list, id) then return end
  redis.call('HSET', key, 'mw_lock', list, 'mw_queue', queue)
  redis.pcall('ZADD', WATCH, 'LT', whole(now + after), id)
end

-- A job for one worker that may fall back to others is looked at while it stands in that worker's queue.
local function mind(id, key, now)
  if redis.call('HEXISTS', key, 'mw_fallback') == 0 then return end
  redis.pcall('ZADD', WATCH, whole(now + LOOK_EVERY), id)
end

local advance

-- What is common to all ends; status, error and output are in the record already. `dead` says why a job
-- is a dead letter. The dependants of a job that ended with another are left to settle.
local function close(id, key, has, status, payload, now, dead, by, later)
  redis.pcall('ZADD', dead and DEAD or ENDED, whole(now), id)
  if dead then redis.call('HSET', key, 'mw_dead', dead) end
  reply(has, id, payload)
  event(id, status, by, dead)
  if redis.call('EXISTS', NEXT .. id) == 0 then return end
  if later then owe(id, status == 'finished')
  else advance(id, status == 'finished', now, MOST_TOLD) end
end

-- Ends a job that no worker holds in error.
local function fault(id, key, has, message, now, dead, by, later)
  redis.pcall('ZREM', WATCH, id)
  redis.call('HDEL', key, 'mw_waiting', 'mw_expires', 'mw_token', 'mw_lock', 'mw_stop', 'mw_seen')
  redis.call('HSET', key, 'status', 'error', 'error', message, 'updated_at', iso(now))
  close(id, key, has, 'error', message, now, dead, by, later)
end

-- Puts the id of a job that may run into its queue: `how` is LPUSH for the end, RPUSH for the front.
-- Whether it stands there; if not, the job has ended.
local function deliver(how, id, key, has, queue, now, later)
  if (queue or '') ~= '' and pushed(how, queue, id) then
    mind(id, key, now)
    return true
  end
  local why = 'the key of its queue, ' .. (queue or '') .. ', is no list'
  fault(id, key, has, why, now, 'queue', '', later)
end

-- Tells up to `most` of the jobs that wait for `id` whether it finished. Returns how many it told. One that
-- does not wait for it any more, since it was stopped or is another by now, is left alone.
advance = function(id, finished, now, most)
  local children = redis.pcall('LPOP', NEXT .. id, most) or {}
  if children.err then return 0 end
  for _, child in ipairs(children) do
    local key = JOB .. child
    local has = read(key, 'status', 'mw_waiting', 'mw_on_failure', 'mw_queue', 'mw_reply', 'mw_legacy',
      'script_type', 'worker_id', 'actor_id')
    local from, to = string.find(has.mw_waiting or '', '"' .. id .. '"', 1, true)
    if has.status == 'dispatched' and from then
      local left = string.sub(has.mw_waiting, 1, from - 1) .. string.sub(has.mw_waiting, to + 1)
      if not finished and has.mw_on_failure ~= 'continue' then
        fault(child, key, has, 'prerequisite ' .. id .. ' did not finish', now, nil, id, true)
      elseif string.find(left, '"', 1, true) then
        redis.call('HSET', key, 'mw_waiting', left)
      else
        redis.call('HDEL', key, 'mw_waiting', 'mw_expires')
        redis.call('HSET', key, 'updated_at', iso(now))
        redis.pcall('ZREM', WATCH, child)
        event(child, 'ready', id)
        if deliver('LPUSH', child, key, has, has.mw_queue, now, true) then
          double(child, key, has.mw_queue, has.script_type, worker_of(has), now)
        end
      end
    end
  end
  if redis.call('EXISTS', NEXT .. id) == 1 then owe(id, finished) end
  return #children
end
