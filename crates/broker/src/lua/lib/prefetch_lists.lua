--- @include base
-- Prefetch lists of dead workers: their ids return to their queues.
local MOST_MOVED = 1000 -- ids in one call

-- Empties up to that many prefetch lists. A blocking read may outlast its registry entry by `outlast` ms. Returns the
-- number of ids moved.
local function unfeed(now, listeners, outlast)
  local moved = 0
  local gone = redis.call('ZRANGEBYSCORE', FEEDS, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, listeners)
  for i = 1, #gone, 2 do
    local member, queue = gone[i], string.match(gone[i], '^%S+ (.*)$')
    local feed = FEED .. member
    while queue and moved < MOST_MOVED do
      local id = redis.pcall('LMOVE', feed, queue, 'LEFT', 'RIGHT')
      if not id or id.err then break end -- a queue that is no list does not block others
      moved = moved + 1
    end
    -- The server may still push an id to a process that hangs.
    local over = tonumber(gone[i + 1]) + outlast <= now
    if over and redis.call('EXISTS', feed) == 0 then redis.call('ZREM', FEEDS, member) end
  end
  return moved
end
