--- @include queue_settings
-- What a queue, or a route of Bananas, lets start: nothing while it is paused, else as many as its limits leave.
local RECHECK = 200 -- ms until one looks again whether a slot is free: its end wakes nobody elsewhere
local gates = {}

-- The gate of a queue in this call; nil where nothing is set.
local function gate(queue, now)
  local set = settings(queue)
  if not set then return end
  local g = gates[set.base]
  if g then return g end
  g = {set = set, left = INFINITE, spent = 0}
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

-- Writes what the call has used, and tells for how many ms there is no use in asking again (0: none).
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
