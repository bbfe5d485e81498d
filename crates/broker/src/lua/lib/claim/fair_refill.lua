--- @include claim/send_home, queue/queue_settings
-- Checks of the backlogs of concurrency keys, and the time when the next job or schedule is due.
local MOST_AT_ONCE = 100 -- jobs of one key

-- Removes heads that their queue does not hold: a foreign worker popped them and died. Returns their number. A
-- prefetched head counts too, which lets one more job of its key in.
local WALKS = 100 -- searches of lists in one call
local LONGEST = 10000 -- entries searched, from the front
local walks = 0
local function lost_heads(queue, key, set)
  local length, free, name = try('LLEN', queue), 0, HEADS .. member(queue, key)
  -- In a fair queue a head may stand further back.
  if type(length) ~= 'number' or set.fair and length > LONGEST then return 0 end
  for _, id in ipairs(redis.call('ZRANGE', name, 0, WALKS - 1)) do
    if walks >= WALKS then break end
    walks = walks + 1
    if not redis.call('LPOS', queue, id, 'RANK', '-1', 'MAXLEN', LONGEST) then
      redis.call('ZREM', name, id)
      free = free + 1
    end
  end
  return free
end

-- Returns how many of `n` jobs may enter the queue beside the heads of their key.
local function beside_heads(set, queue, key, n)
  if set.fair then
    local free = turns(queue, key, set)
    return math.min(n, free > 0 and free or lost_heads(queue, key, set))
  end
  local free = vacancies(set.base, key, n)
  if free > 0 then return free end
  for _, priority in ipairs(PRIORITIES) do free = free + lost_heads(set.base .. priority, key, set) end
  return free
end

-- Returns how many jobs of a key may enter the queue now, and the ms until the next check.
local function may(set, queue, key, now)
  local n, pause = MOST_AT_ONCE, 0
  if not set then return n, 0 end
  local name = member(set.base, key)
  if set.key_concurrency then
    n, pause = math.min(n, room(name, set.key_concurrency)), LOOK_EVERY
    if n <= 0 then return 0, pause end -- the next end of a run brings the next
  end
  if set.key_rate then
    local left, wait, state = allowance(set.key_rate, name, now)
    -- A job that enters now counts when it starts.
    if left > 0 and state then wait = math.max(wait, state.each or 0) end
    n, pause = math.min(n, left), math.max(1, math.min(math.ceil(wait), LOOK_EVERY))
  end
  if set.fair then pause = math.max(pause, LOOK_EVERY) end
  if n > 0 and set.keyed then n = beside_heads(set, queue, key, n) end
  return n, pause
end

-- Returns the jobs of a backlog whose name is no queue of this namespace to the queues in their records. Returns their
-- number.
local function send_back(name, now, most)
  local ids = redis.call('ZPOPMIN', BACKLOG .. name, most)
  for i = 1, #ids, 2 do send_home(ids[i], now) end
  return #ids / 2
end

-- Checks the backlogs of up to `most` keys. Returns the number of keys and jobs visited.
local function recheck(now, most)
  local looked = 0
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', BACKLOG_INDEX, '-inf', int(now), 'LIMIT', 0, most)) do
    if looked >= most then break end
    local queue, key = string.match(name, '^(%S+) (.*)$')
    local set = queue and settings(queue)
    local n, pause = 0, 0
    if queue and not own_queue(queue) then looked = looked + 1 + send_back(name, now, most - looked)
    elseif queue then
      n, pause = may(set, queue, key, now)
      n = math.min(n, most - looked)
      -- To the front, since they are older than the jobs there; in a fair queue to the end.
      looked = looked + 1 + (n > 0 and forward(set and set.fair and 'LPUSH' or 'RPUSH', queue, key, n) or 0)
    end
    if redis.call('EXISTS', BACKLOG .. name) == 1 then redis.call('ZADD', BACKLOG_INDEX, int(now + pause), name)
    else redis.call('ZREM', BACKLOG_INDEX, name) end
  end
  return looked
end

-- Returns in how many ms the next job or schedule is due, -1 for none.
local function soonest(now)
  local at
  for _, set in ipairs({DELAYED, BACKLOG_INDEX, SCHEDULES}) do
    local first = tonumber(redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2] or '')
    -- A schedule that is never due has the score infinity.
    if first and first < INFINITE and not (at and at < first) then at = first end
  end
  return at and int(math.max(0, at - now)) or '-1'
end
