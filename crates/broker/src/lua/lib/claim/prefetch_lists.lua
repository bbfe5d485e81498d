-- Prefetch lists of dead workers: their ids return to their queues. The caller includes `own_queue` and `send_home`.
local MOST_MOVED = 1000 -- ids in one call

-- Empties up to that many prefetch lists. A blocking read may outlast its registry entry by `outlast` ms. Returns the
-- number of ids moved.
local function unfeed(now, listeners, outlast)
  local moved = 0
  local gone = redis.call('ZRANGEBYSCORE', PREFETCH_LISTS, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, listeners)
  for i = 1, #gone, 2 do
    local member, queue = gone[i], string.match(gone[i], '^%S+ (.*)$')
    local feed, own, id = PREFETCH .. member, queue and own_queue(queue)
    while queue and moved < MOST_MOVED do
      if own then id = try('LMOVE', feed, queue, 'LEFT', 'RIGHT') else id = try('LPOP', feed) end
      if not id or id.err then break end -- a queue that is no list does not block others
      if not own then send_home(id, now) end
      moved = moved + 1
    end
    -- The server may still push an id to a process that hangs.
    local over = tonumber(gone[i + 1]) + outlast <= now
    if over and redis.call('EXISTS', feed) == 0 then redis.call('ZREM', PREFETCH_LISTS, member) end
  end
  return moved
end
