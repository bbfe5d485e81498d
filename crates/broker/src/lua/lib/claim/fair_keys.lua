--- @include base, queue/queue_settings, own_queues
-- Jobs with a concurrency key (a tenant, say) in fair queues or with limits of each key. Jobs that may not start yet
-- wait in the backlog of their key, in the order of enqueueing. A fair queue holds as many jobs of a key as its weight
-- says, its heads; the next one comes when a head is claimed.

-- Reads the optional fields of a record, which it has only with `mw_with`.
local function more(key, has)
  if has.mw_with and not has.more then
    local rest = read(key, 'mw_key', 'mw_seq', 'mw_slot', 'mw_unique', 'mw_run_at', 'mw_batch',
      'mw_bananas', 'mw_flow', 'mw_node', 'mw_generation', 'mw_alert')
    for name, value in pairs(rest) do has[name] = value end
    if has.mw_slot and not own_queue(has.mw_slot) then has.mw_slot = nil end
    has.more = true
  end
  return has
end

local function member(queue, key) return queue .. ' ' .. key end

-- Puts a job into the backlog of its key, which is checked at `due` at the latest.
local function set_aside(queue, key, id, has, due)
  redis.call('ZADD', BACKLOG .. member(queue, key), tonumber(has.mw_seq or '') or 0, id)
  redis.call('ZADD', BACKLOG_INDEX, 'LT', int(due), member(queue, key))
end

-- Returns how many jobs of a key may still enter a fair queue. Foreign workers bring no next job, so heads that they
-- claimed are found by their status.
local function turns(queue, key, set)
  local heads = HEADS .. member(queue, key)
  local free = weight(set, key) - redis.call('ZCARD', heads)
  if free > 0 then return free end
  for _, id in ipairs(redis.call('ZRANGE', heads, 0, -1)) do
    if not is_dispatched(read(JOB .. id, 'status').status) then
      redis.call('ZREM', heads, id)
      free = free + 1
    end
  end
  return free
end

-- Moves up to `most` jobs from the backlog to the end (LPUSH) or the front (RPUSH) of the queue. Returns their number.
local function forward(how, queue, key, most, set)
  local name = member(queue, key)
  if most < 1 or type(try('LLEN', queue)) ~= 'number' then return 0 end
  local first = redis.call('ZPOPMIN', BACKLOG .. name, most)
  local moved = #first / 2
  for i = 1, moved do
    -- The last id that is pushed to the front is the first one there.
    local at = 2 * (how == 'RPUSH' and moved + 1 - i or i)
    if set and set.fair then redis.call('ZADD', HEADS .. name, first[at], first[at - 1]) end
    redis.call(how, queue, first[at - 1])
  end
  if redis.call('EXISTS', BACKLOG .. name) == 0 then redis.call('ZREM', BACKLOG_INDEX, name) end
  return moved
end

-- Returns true if a job may enter the end of its queue; else puts it into the backlog of its key.
local function try_enter(queue, id, has, now)
  local set = has.mw_key and settings(queue)
  if not (set and set.fair) then return true end
  local name = member(queue, has.mw_key)
  if redis.call('EXISTS', BACKLOG .. name) == 1 or turns(queue, has.mw_key, set) <= 0 then
    set_aside(queue, has.mw_key, id, has, now + LOOK_EVERY)
    return false
  end
  redis.call('ZADD', HEADS .. name, tonumber(has.mw_seq or '') or 0, id)
  return true
end

-- Removes a job from the backlog and the heads of its key; the next job of the key takes its place.
local function drop_slot(queue, id, has)
  if not has.mw_key or not queue then return end
  redis.call('ZREM', BACKLOG .. member(queue, has.mw_key), id)
  if redis.call('ZREM', HEADS .. member(queue, has.mw_key), id) == 1 then
    forward('LPUSH', queue, has.mw_key, 1, settings(queue))
  end
end

-- Ends a lease and frees its slots: the next job of its key goes to the front, unless this one `returns` there.
local PRIORITIES = {':prio:0', '', ':prio:1', ':prio:2'}
local function unlease(id, key, has, returns)
  redis.call('ZREM', LEASES, id)
  local base = more(key, has).mw_slot
  if not base then return end
  redis.call('HDEL', key, 'mw_slot')
  try('ZREM', SLOTS .. base, id)
  if not has.mw_key or try('ZREM', SLOTS .. member(base, has.mw_key), id) ~= 1 or returns then return end
  for _, priority in ipairs(PRIORITIES) do
    if forward('RPUSH', base .. priority, has.mw_key, 1, settings(base)) > 0 then return end
  end
end
