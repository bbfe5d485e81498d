-- Where the id of a job may stand that workers without leases take too.
local NEAR = 1000 -- entries at the old end of a list, where most are that one looks for
local MOST_LISTENERS = 10000
local walked = 0 -- list entries so far

-- Whether a list holds the id.
local function holds(list, id)
  local length = list and redis.pcall('LLEN', list)
  if type(length) ~= 'number' or length == 0 then return false end
  walked = walked + math.min(length, NEAR)
  if redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', NEAR) then return true end
  if length <= NEAR then return false end
  walked = walked + length
  return redis.call('LPOS', list, id) and true or false
end

-- The old list that holds the id, if one does: its lock, that of its type's migration, or another of those
-- that its client may have chosen.
local function old_place(id, has)
  local worker_id = has.worker_id or ''
  local lists = {OLD_TYPE .. string.lower(has.script_type or ''), JOB .. worker_id, OLD_WORK .. worker_id}
  lists[#lists + 1] = has.mw_lock or nil
  lists[#lists + 1] = old_list(has.script_type, worker_id) or nil
  for _, list in ipairs(lists) do
    if holds(list, id) then return list end
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

-- Since when a job is seen to be like this: nothing tells what a worker without leases does.
local function since(key, has, how, now)
  local was, at = string.match(has.mw_seen or '', '^(%S+) (%d+)$')
  if was == how then return tonumber(at) end
  redis.call('HSET', key, 'mw_seen', how .. ' ' .. whole(now))
  return now
end
