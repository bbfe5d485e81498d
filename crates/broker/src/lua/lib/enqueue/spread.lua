--- @include complete/ending
-- Jobs of spread queues, in one of their parts. For each key, a sorted set has its jobs in this part, by submission: with
-- them, a key stays here while its queue gets other parts. Jobs that have ended are removed from the sets by later calls.
local MOST_ENDED = 100 -- greatest number of ended jobs that one call removes from the set of a key
local CHECKED = 2 -- number of other keys whose sets each new job checks, so that sets of old keys do not stay

-- Removes jobs that have ended from the beginning of the set of a key. Returns true if the set is empty.
local function spread_ended(set)
  local ids, ended = redis.call('ZRANGE', set, '0', MOST_ENDED), {}
  for i = 1, #ids do
    local status = read(JOB .. ids[i], 'status').status
    if status and not final(status) then break end
    ended[i] = ids[i]
  end
  if #ended > 0 then redis.call('ZREM', set, unpack(ended)) end
  return #ended == #ids and #ids <= MOST_ENDED
end

-- Checks the sets of the keys that were checked least recently.
local function check_spread_keys(index, now)
  for _, key in ipairs(redis.call('ZRANGE', index, '0', CHECKED - 1)) do
    if spread_ended(index .. ' ' .. key) then redis.call('ZREM', index, key)
    else redis.call('ZADD', index, int(now), key) end
  end
end

-- Adopts the generation of a layout. Returns the adopted one if it is newer.
local function newer_spread(name, generation)
  local seen = tonumber(redis.call('HGET', SPREADS, name) or '0')
  if seen > tonumber(generation) then return int(seen) end
  if seen < tonumber(generation) then redis.call('HSET', SPREADS, name, generation) end
end

-- Returns true if a job of this part has a unique name: an unfinished one, or an ended one within its window.
local function spread_holds_name(name)
  local holder = try('GET', name)
  if type(holder) ~= 'string' then return false end
  local status = read(JOB .. holder, 'status').status
  return (status and not final(status)) or try('PEXPIRE', name, 1, 'NX') == 0
end

-- Returns why this part does not take a job: 'stale GENERATION', or 'elsewhere' if it has no unfinished job of its key,
-- which has moved therefore. A unique name that outlives its job keeps the key, too.
local function spread_refuses(o)
  local newer = newer_spread(o.spread, o.generation)
  if newer then return 'stale ' .. newer end
  if not o.if_present then return end
  if o.unique and spread_holds_name(UNIQUE .. o.unique) then return end
  return spread_ended(SPREAD .. o.spread .. ' ' .. o.partition) and 'elsewhere'
end

-- Notes a stored job under its key.
local function note_spread(id, o, now)
  if not o.partition then return end
  local index = SPREAD .. o.spread
  local set = index .. ' ' .. o.partition
  spread_ended(set)
  redis.call('ZADD', set, redis.call('INCR', SEQ), id)
  check_spread_keys(index, now)
  redis.call('ZADD', index, int(now), o.partition)
end
