-- What a queue lets start: nothing while it is paused, else as many as its limits leave, and of each key as
-- many as that key's.
local RECHECK = 200 -- ms until one looks again whether a slot is free: its end wakes nobody elsewhere
local gates = {}

-- The gate of a queue in this call; nil where nothing is set.
local function gate(queue, now)
  local set = settings(queue)
  if not set then return end
  local g = gates[set.base]
  if g then return g end
  g = {set = set, left = INFINITE, spent = 0}
  if set.fair or set.key_concurrency or set.key_rate then redis.call('ZCARD', HELD) end
  if set.paused == '1' then g.left = 0 end
  if set.concurrency and g.left > 0 then g.left = room(set.base, set.concurrency) end
  if set.rate and g.left > 0 then
    local left
    left, g.wait, g.state = allowance(set.rate, set.base, now)
    g.left = math.min(g.left, left)
    if left > 0 then g.wait = nil end
  end
  gates[set.base] = g
  return g
end

-- Whether a job may start, and the fields that note its slot; false if it was set aside for its key's sake.
local function passes(g, queue, id, is, now)
  local set, key, name = g.set, is.mw_key, is.mw_key and member(g.set.base, is.mw_key)
  if key and set.fair then redis.call('ZREM', HEADS .. member(queue, key), id) end
  local left = INFINITE
  if key and set.key_concurrency then
    left = room(name, set.key_concurrency)
    if left <= 0 then return set_aside(queue, key, id, is, now + LOOK_EVERY) or false end
  end
  if key and set.key_rate then
    local may, wait, state = allowance(set.key_rate, name, now)
    if may < 1 then return set_aside(queue, key, id, is, now + wait) or false end
    spend(name, state, 1)
  end
  g.left, g.spent = g.left - 1, g.spent + 1
  -- The last slot of a key passes its turn on when it is free again.
  if key and set.fair and left > 1 then forward('LPUSH', queue, key, turns(queue, key, set), set) end
  if set.concurrency then redis.pcall('ZADD', SLOTS .. set.base, whole(now), id) end
  if key and set.key_concurrency then redis.pcall('ZADD', SLOTS .. name, whole(now), id) end
  if set.concurrency or (key and set.key_concurrency) then return {'mw_slot', set.base, 'mw_with', '1'} end
  return {}
end

-- Writes what the call has used, and tells for how many ms there is no use in asking again (0: none).
local function shut(g, now)
  if g.state and g.spent > 0 then
    spend(g.set.base, g.state, g.spent)
    g.spent = 0
  end
  if g.left > 0 then return 0 end
  if g.wait or not g.state then return g.wait or RECHECK end
  local left, wait = allowance(g.set.rate, g.set.base, now)
  return left > 0 and RECHECK or math.max(1, math.min(wait, RECHECK))
end
