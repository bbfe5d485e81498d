--- @include legacy_lookup
-- Canonical queues, as walks have met them: on which of them a job stands.
local MOST_LISTS = 1000 -- canonical lists that are known; of more, none counts as looked through

-- The canonical list that holds the id, if one does: its own; a client that is not ours may have chosen any.
local known
local function canonical_place(id, has)
  if holds(has.mw_queue, id) then return has.mw_queue end
  if has.mw_reply then return end
  known = known or redis.pcall('ZRANGE', LISTS, 0, MOST_LISTS - 1)
  for _, list in ipairs(known) do
    walked = walked + LIST
    if list ~= has.mw_queue and holds(list, id) then return list end
  end
end

-- A job stands on this canonical list: from there it is run, and its client waits for the reply where that list says.
local function note_place(key, has, place)
  if place ~= has.mw_queue then redis.call('HSET', key, 'mw_queue', place) end
  if LEGACY and not has.mw_reply and not has.mw_legacy then redis.call('HSET', key, 'mw_legacy', '0') end
  has.mw_queue = place
end

-- Until when all canonical lists that there were are known, in ms: when the last whole walk began.
local since_whole
local function whole_at()
  if not since_whole then
    local at, lists = redis.pcall('HGET', WALK, 'whole'), redis.pcall('ZCARD', LISTS)
    local all = type(lists) == 'number' and lists <= MOST_LISTS
    since_whole = all and type(at) == 'string' and tonumber(at) or -1
  end
  return since_whole
end
