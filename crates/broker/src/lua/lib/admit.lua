-- Taking jobs, the long way: those that wish for something, were stored by others, or ran before; and off
-- queues for which something is set.

-- Whether the claim has to write where it ends more than others do: see finish.lua.
local function marked(is, attempt) return is.error or is.mw_stop or is.mw_lost or attempt ~= 1 end

local function admit(id, k, g)
  local key, is = JOB .. id, {}
  local record, legacy = redis.pcall('HGETALL', key), ask.homes[k]
  for i = 1, #record, 2 do is[record[i]] = record[i + 1] end
  local queue = legacy and (home(is) or legacy) or list(k)
  if #record == 0 or not takeable(is, id, list(k)) then
    dropped = dropped + 1
    return
  end
  local waiting, prerequisites = waits(id, key, is, queue, ask.now, legacy)
  looked = looked + prerequisites
  if waiting then
    dropped = dropped + 1
    return
  end
  local slot = g and passes(g, queue, id, is, ask.now)
  if slot == false then return end
  local attempt = (tonumber(is.mw_attempt or '') or 0) + 1
  lease(id, key, queue, attempt, slot)
  if legacy then redis.call('HSET', key, 'mw_legacy', '1') end
  if marked(is, attempt) then redis.call('HSET', key, 'mw_with', '1') end
  if is.mw_lock or is.mw_fallback or is.mw_seen then
    redis.call('HDEL', key, 'mw_lock', 'mw_seen')
    redis.pcall('ZREM', WATCH, id)
  end
  -- A key that holds others back until this one has started.
  if is.mw_unique and string.find(is.mw_unique, '^started ') then unclaim(id, is) end
  hand_out(id, queue, attempt, record)
end

-- What came to this process meanwhile; what is more than wanted goes back to its queue.
local function from_feed(feed, k, g)
  while looked < MOST and not walked do
    local may, id = ask.want > 0 and (not g or g.left > 0)
    if may then id = redis.call('RPOP', feed)
    else id = redis.pcall('LMOVE', feed, list(k), 'LEFT', 'RIGHT') end -- newest first
    if not id or id.err then break end
    if may then consider({id}, feed, k, g) else looked = looked + 1 end
  end
end

local function from_queue(k, g)
  while ask.want > 0 and (not g or g.left > 0) and looked < MOST and not walked do
    -- A key that is no list is passed over: an error would leave what is claimed already with nobody.
    local ids = redis.pcall('RPOP', list(k), math.min(ask.want, g and g.left or MOST, MOST - looked))
    if not ids or ids.err then break end
    consider(ids, list(k), k, g)
  end
end

-- Takes off each list for itself, as far as its queue's gate lets. Returns the places of those that are held
-- back, each with the ms for which there is no use in asking again.
local function each()
  local n, gates, held = #KEYS - ask.lists, {}, {}
  -- Should a key that is needed be of another kind, the call ends here, before ids are taken.
  for k = 1, n do gates[k] = gate(ask.homes[k] or list(k), ask.now) end
  for i, k in ipairs(ask.places) do from_feed(KEYS[ask.feeds + i], k, gates[k]) end
  for k = 1, n do from_queue(k, gates[k]) end
  for k = 1, n do
    local ms = gates[k] and shut(gates[k], ask.now) or 0
    if ms > 0 then
      held[#held + 1] = k
      held[#held + 1] = ms
    end
  end
  return held
end
