--- @include claim/claim_slow
-- Claims off each list by itself, for limited queues and keys that are no lists.

-- Returns how many more jobs may be claimed through a gate. Jobs beyond the worker's free slots would use up a limit
-- before they run, so a limited queue gives none.
local function left_for(g) return g and math.min(g.left, ask.want - (g.limited and ask.ahead or 0)) or ask.want end

-- Ids of a prefetch list are claimed; those beyond `want` return to their queue.
local function from_feed(feed, k, g)
  while looked < MOST and not walked do
    local may, id = left_for(g) > 0
    if may then id = redis.call('RPOP', feed)
    elseif not ask.arrived then id = try('LMOVE', feed, list(k), 'LEFT', 'RIGHT') end -- newest first
    if not id or id.err then break end
    if may then claim_ids({id}, feed, k, g) else looked = looked + 1 end
  end
end

local function from_queue(k, g)
  while left_for(g) > 0 and looked < MOST and not walked do
    -- A key that is no list is skipped: an error would lose the jobs that are claimed already.
    local ids = try('RPOP', list(k), math.min(left_for(g), MOST - looked))
    if not ids or ids.err then break end
    claim_ids(ids, list(k), k, g)
  end
end

-- Claims off each list by itself, within the gate of its queue. Returns the positions of blocked lists, each with the
-- ms for which it is blocked.
local function claim_each()
  local n, gates, held = #KEYS - ask.lists, {}, {}
  -- Ends the call if a key is of another kind, before ids are popped.
  for k = 1, n do
    gates[k] = gate(ask.homes[k] or list(k), ask.now)
    local set = gates[k] and gates[k].set or {}
    if set.keyed then redis.call('ZCARD', BACKLOG_INDEX) end
  end
  for i, k in ipairs(ask.places) do from_feed(KEYS[ask.feeds + i], k, gates[k]) end
  for k = 1, ask.arrived and 0 or n do from_queue(k, gates[k]) end
  for k = 1, n do
    local ms = gates[k] and blocked_for(gates[k], ask.now) or 0
    if ms > 0 then
      held[#held + 1] = k
      held[#held + 1] = ms
    end
  end
  return held
end
