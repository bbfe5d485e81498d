--- @include orphans/scan, own_queues
-- Canonical queues, as scans have found them, and which of them holds a job.
local MOST_LISTS = 1000 -- canonical lists that are searched; with more than that, no search counts as complete

-- Returns the canonical list that holds the id, if one does. A foreign client may have chosen any list.
local known
local function canonical_place(id, has)
  if holds(has.mw_queue, id) then return has.mw_queue end
  if has.mw_reply then return end
  known = known or try('ZRANGE', LISTS, 0, MOST_LISTS - 1)
  for _, list in ipairs(known) do
    walked = walked + LIST
    if list ~= has.mw_queue and own_queue(list) and holds(list, id) then return list end
  end
end

-- Notes the canonical list that holds a job: its queue, and by that the reply list of its client.
local function note_place(key, has, place)
  if place ~= has.mw_queue then redis.call('HSET', key, 'mw_queue', place) end
  if LEGACY and not has.mw_reply and not has.mw_legacy then redis.call('HSET', key, 'mw_legacy', '0') end
  has.mw_queue = place
end

-- Returns the time in ms up to which all canonical lists are known: the start of the last complete scan, -1 for never.
local since_whole
local function whole_at()
  if not since_whole then
    local at, lists = try('HGET', WALK, 'whole'), try('ZCARD', LISTS)
    local all = type(lists) == 'number' and lists <= MOST_LISTS
    since_whole = all and type(at) == 'string' and tonumber(at) or -1
  end
  return since_whole
end
