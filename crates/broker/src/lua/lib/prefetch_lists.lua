--- @include base
-- Feed lists of listeners that are gone: what waits there goes back to where it came from.
local MOST_MOVED = 1000 -- ids in one call

-- Looks at so many listeners; a listener's last wait may outlast it by `outlast` ms. Returns the number of ids
-- moved.
local function unfeed(now, listeners, outlast)
  local moved = 0
  local gone = redis.call('ZRANGEBYSCORE', FEEDS, '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, listeners)
  for i = 1, #gone, 2 do
    local member, queue = gone[i], string.match(gone[i], '^%S+ (.*)$')
    local feed = FEED .. member
    while queue and moved < MOST_MOVED do
      local id = redis.pcall('LMOVE', feed, queue, 'LEFT', 'RIGHT')
      if not id or id.err then break end -- a queue that is no list holds up no other
      moved = moved + 1
    end
    -- A process that hangs waits on in the server's eyes, and an id may still come to it.
    local over = tonumber(gone[i + 1]) + outlast <= now
    if over and redis.call('EXISTS', feed) == 0 then redis.call('ZREM', FEEDS, member) end
  end
  return moved
end
