--- @include base, claim/key_heads, own_queues
-- Jobs with a concurrency key (a tenant, say): those that may not start yet wait in the backlog of their key, in order.

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

-- Puts a job into the backlog of its key, which is checked at `due` at the latest.
local function set_aside(queue, key, id, has, due)
  redis.call('ZADD', BACKLOG .. member(queue, key), tonumber(has.mw_seq or '') or 0, id)
  redis.call('ZADD', BACKLOG_INDEX, 'LT', int(due), member(queue, key))
end

-- Returns true if an earlier job waits in the backlog of the key.
local function is_behind(queue, key, has)
  local first = tonumber(redis.call('ZRANGE', BACKLOG .. member(queue, key), 0, 0, 'WITHSCORES')[2] or '')
  return first and first < (tonumber(has.mw_seq or '') or 0)
end

-- Moves up to `most` jobs from the backlog to the end (LPUSH) or the front (RPUSH) of the queue. Returns their number.
local function forward(how, queue, key, most)
  local name = member(queue, key)
  if most < 1 or type(try('LLEN', queue)) ~= 'number' then return 0 end
  local first = redis.call('ZPOPMIN', BACKLOG .. name, most)
  local moved = #first / 2
  for i = 1, moved do
    -- The last id that is pushed to the front is the first one there.
    local at = 2 * (how == 'RPUSH' and moved + 1 - i or i)
    note_head(queue, first[at - 1], {mw_key = key, mw_seq = first[at]})
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
  note_head(queue, id, has)
  return true
end

-- Brings the next job of a key to the front of its queue, if it has a free slot that no job there takes.
local function bring_next(base, key)
  local set = settings(base)
  local limit = set and set.key_concurrency
  if limit and vacancies(base, key, room(member(base, key), limit)) <= 0 then return end
  for _, priority in ipairs(PRIORITIES) do
    if forward('RPUSH', base .. priority, key, 1) > 0 then return end
  end
end

-- Removes a job from the backlog and the heads of its key; the next job of the key takes its place.
local function drop_slot(queue, id, has)
  if not has.mw_key or not queue then return end
  redis.call('ZREM', BACKLOG .. member(queue, has.mw_key), id)
  if redis.call('ZREM', HEADS .. member(queue, has.mw_key), id) ~= 1 then return end
  local set = settings(queue)
  if set and not set.fair then bring_next(set.base, has.mw_key) else forward('LPUSH', queue, has.mw_key, 1) end
end

-- Ends a lease and frees its slots. Returns the queue if it freed one of the job's key, which `bring_next` fills.
local function free_slot(id, key, has)
  redis.call('ZREM', LEASES, id)
  local base = more(key, has).mw_slot
  if not base then return end
  redis.call('HDEL', key, 'mw_slot')
  try('ZREM', SLOTS .. base, id)
  return has.mw_key and try('ZREM', SLOTS .. member(base, has.mw_key), id) == 1 and base
end

local function unlease(id, key, has)
  local base = free_slot(id, key, has)
  if base then bring_next(base, has.mw_key) end
end
