--- @include telemetry, dual_write
-- Lists that may hold the id of a job which workers without leases take too.
local MOST_LISTENERS = 10000
local MOST_IN_FEED = 1000 -- a worker prefetches no more
local FROM_ENDS = 10000 -- entries searched from either end of a long list of a type that does not migrate: 0.1 ms
local LIST = 50 -- the cost of reading a list, in entries
local walked = 0 -- list entries searched so far
local bounded, vague = false, false -- true: long lists are searched at their ends only; one was

-- Returns the type of a job: of its record, else of its queue.
local function type_of(has)
  if (has.script_type or '') ~= '' then return has.script_type end
  local queue = has.mw_queue or ''
  return string.sub(queue, 1, #WORK) == WORK and string.match(queue, '^[^:]+', #WORK + 1) or ''
end

-- Returns true if a list holds the id. The oldest entries are searched first.
local function holds(list, id)
  local length = list and try('LLEN', list)
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

-- Returns true if a prefetch list holds the id. Prefetch lists are read once: each holds few ids.
local on_the_way
local function in_feed(id)
  if not on_the_way then
    on_the_way = {}
    for _, member in ipairs(redis.call('ZRANGE', PREFETCH_LISTS, 0, MOST_LISTENERS - 1)) do
      for _, one in ipairs(try('LRANGE', PREFETCH .. member, 0, MOST_IN_FEED - 1)) do on_the_way[one] = true end
    end
  end
  return on_the_way[id]
end

-- Pushes a job that only a legacy list holds to its queue too: both kinds of workers can take it, and that list is the
-- lock.
local function share(id, key, has, list)
  if not holds(has.mw_queue, id) and not pushed('LPUSH', has.mw_queue, id) then return end
  redis.call('HSET', key, 'mw_lock', list, 'mw_legacy', '1')
end

-- Returns the time in ms since which a job has this state. A worker without leases shows its work by `updated_at` only.
local function since(key, has, how, now)
  local is = how .. ' ' .. (has.updated_at or '')
  local at, was = string.match(has.mw_seen or '', '^(%d+) (.*)$')
  if was == is and tonumber(at) <= now then return tonumber(at) end
  redis.call('HSET', key, 'mw_seen', int(now) .. ' ' .. is)
  return now
end
