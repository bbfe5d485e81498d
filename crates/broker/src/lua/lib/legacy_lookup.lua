--- @include telemetry, dual_write
-- Where the id of a job may stand that workers without leases take too.
local MOST_LISTENERS = 10000
local MOST_IN_FEED = 1000 -- a worker takes no more at once
local FROM_ENDS = 10000 -- entries looked at from either end of a long list, where the type does not migrate: 0.1 ms
local LIST = 50 -- to ask for a list costs as much as to walk over so many entries
local walked = 0 -- list entries so far
local bounded, vague = false, false -- whether long lists are looked at from their ends alone, and one was

-- The type of a job, which the queue tells where its record does not.
local function type_of(has)
  if (has.script_type or '') ~= '' then return has.script_type end
  local queue = has.mw_queue or ''
  return string.sub(queue, 1, #WORK) == WORK and string.match(queue, '^[^:]+', #WORK + 1) or ''
end

-- Whether a list holds the id. The oldest entries are looked at first.
local function holds(list, id)
  local length = list and redis.pcall('LLEN', list)
  if type(length) ~= 'number' or length == 0 then return false end
  if bounded and length > 2 * FROM_ENDS then
    walked = walked + 2 * FROM_ENDS
    if redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', FROM_ENDS) then return true end
    if redis.call('LPOS', list, id, 'MAXLEN', FROM_ENDS) then return true end
    vague = true
    return false
  end
  local at = redis.call('LPOS', list, id, 'RANK', -1)
  walked = walked + (at and length - at or length)
  return at and true
end

-- Whether the id is on its way from a list to one of our workers. Feed lists are read once: each holds few ids.
local on_the_way
local function in_feed(id)
  if not on_the_way then
    on_the_way = {}
    for _, member in ipairs(redis.call('ZRANGE', FEEDS, 0, MOST_LISTENERS - 1)) do
      for _, one in ipairs(redis.pcall('LRANGE', FEED .. member, 0, MOST_IN_FEED - 1)) do on_the_way[one] = true end
    end
  end
  return on_the_way[id]
end

-- A job that waits on an old list alone: from now on either side can take it, and that list is the lock.
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
  redis.call('HSET', key, 'mw_seen', int(now) .. ' ' .. is)
  return now
end
