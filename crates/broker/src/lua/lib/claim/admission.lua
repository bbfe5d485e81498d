--- @include queue/queue_settings
-- Admission: how many jobs of a queue, or of a route of Bananas, may start under its pause and its limits.
local RECHECK = 200 -- ms until the next check for a free slot: the end of a run wakes no other worker
local gates = {}

-- Returns the gate of a queue in this call; nil for a queue without settings.
local function gate(queue, now)
  local set = settings(queue)
  if not set then return end
  local g = gates[set.base]
  if g then return g end
  local limited = set.concurrency or set.rate or set.keyed
  g = {set = set, left = INFINITE, spent = 0, limited = limited}
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

-- Writes the used part of the rate. Returns for how many ms the queue is blocked (0: not at all).
local function blocked_for(g, now)
  if g.state and g.spent > 0 then
    spend(g.set.base, g.state, g.spent)
    g.spent = 0
  end
  if g.left > 0 then return 0 end
  if g.wait or not g.state then return g.wait or RECHECK end
  local left, wait = allowance(g.set.rate, g.set.base, now)
  return left > 0 and RECHECK or math.max(1, math.min(wait, RECHECK))
end
