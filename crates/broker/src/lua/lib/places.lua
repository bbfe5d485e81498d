-- Where the id of a job may stand that workers without leases take too.
local MOST_LISTENERS = 10000
local walked = 0 -- list entries so far

-- Whether a list holds the id. The oldest entries are looked at first.
local function holds(list, id)
  local length = list and redis.pcall('LLEN', list)
  if type(length) ~= 'number' or length == 0 then return false end
  local at = redis.call('LPOS', list, id, 'RANK', -1)
  walked = walked + (at and length - at or length)
  return at and true
end

-- The old list that holds the id, if one does: its lock, that of its type's migration, or another of those
-- that its client may have chosen.
local function old_place(id, has)
  local worker_id = worker_of(has)
  local lists = {OLD_TYPE .. string.lower(has.script_type or ''), JOB .. worker_id, OLD_WORK .. worker_id}
  lists[#lists + 1] = has.mw_lock or nil
  lists[#lists + 1] = old_list(has.script_type, worker_id) or nil
  local seen = {}
  for _, list in ipairs(lists) do
    if not seen[list] and holds(list, id) then return list end
    seen[list] = true
  end
end

-- Whether the id is on its way from an old list to one of our workers.
local feeds
local function in_feed(id)
  if not feeds then
    feeds = {}
    for _, member in ipairs(redis.call('ZRANGE', FEEDS, 0, MOST_LISTENERS - 1)) do
      local queue = string.match(member, '^%S+ (.*)$') or WORK
      if string.sub(queue, 1, #WORK) ~= WORK then feeds[#feeds + 1] = FEED .. member end
    end
  end
  for _, feed in ipairs(feeds) do
    if holds(feed, id) then return true end
  end
end

-- A job that waits on an old list alone, of which our workers may know nothing: from now on either side
-- can take it, and that list is the lock.
local function share(id, key, has, list)
  if not holds(has.mw_queue, id) and not pushed('LPUSH', has.mw_queue, id) then return end
  redis.call('HSET', key, 'mw_lock', list, 'mw_legacy', '1')
end

-- Since when a job is seen to be like this: nothing tells what a worker without leases does, but the date
-- that it may write.
local function since(key, has, how, now)
  local is = how .. ' ' .. (has.updated_at or '')
  local at, was = string.match(has.mw_seen or '', '^(%d+) (.*)$')
  if was == is and tonumber(at) <= now then return tonumber(at) end
  redis.call('HSET', key, 'mw_seen', whole(now) .. ' ' .. is)
  return now
end
