--- @include base
--- @flags allow-oom
-- Reclaims the messages of dead workers, and counts each as lost once more. An unregistered worker gets none.
-- KEYS[1]   the queue
-- KEYS[2]   this worker's processing list
-- KEYS[3]   the registry of the queue's workers
-- ARGV[1]   the time in ms, '0' for the server's clock
-- ARGV[2]   the group ('' for a list)
-- ARGV[3]   this worker
-- ARGV[4]   most messages
-- ARGV[5]   idle time in ms after which a stream's message is reclaimed whose worker is not registered
-- ARGV[6]   the same for foreign workers (-1 for never)
-- ARGV[7]   the id in the stream to search from
-- ARGV[8]   ms by which a blocking read may outlast its registry entry
-- ARGV[9]   the prefix of the counters of messages
-- ARGV[10]  the prefix of processing lists
-- ARGV[11]  for how long a processing list is kept in ms
-- Returns [1]  per message: id, deliveries, losses, fields
--         [2]  the id to search from in the next call
local MOST_WORKERS = 1000 -- in one call
local MOST_LOOKED = 100 -- messages of a stream in one call
local OURS = 'mw.' -- prefix of the names of this system's workers
local now, group, own, most = clock(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4])
local idle, others = tonumber(ARGV[5]), tonumber(ARGV[6])
local taken = {}
local function is_there(worker) return (tonumber(redis.call('ZSCORE', KEYS[3], worker) or '') or 0) > now end
local function take(id, given, message, fields)
  local key = ARGV[9] .. redis.sha1hex(message)
  local lost = redis.call('HINCRBY', key, 'lost', 1)
  redis.call('PEXPIRE', key, TRIES_FOR)
  taken[#taken + 1] = {id, given, lost, fields}
end

-- Takes an entry of a stream, unless it was deleted.
local function claim(one)
  local entry = redis.call('XCLAIM', KEYS[1], group, own, 0, one[1])[1]
  if not entry then return end
  local message = ''
  for i = 1, #entry[2], 2 do
    if entry[2][i] == 'data' then message = entry[2][i + 1] end
  end
  take(one[1], one[4] + 1, message, entry[2])
end

-- Takes the messages of a dead worker's processing list. Returns true if that was all.
local function all_of_list(worker)
  local hand = ARGV[10] .. worker
  while #taken < most do
    local message = redis.call('LMOVE', hand, KEYS[2], 'RIGHT', 'LEFT')
    if not message then return true end
    take('', 0, message, {'data', message})
  end
  return redis.call('EXISTS', hand) == 0
end

local function all_of_stream(worker)
  local left = most - #taken
  local found = redis.call('XPENDING', KEYS[1], group, '-', '+', left + 1, worker)
  for i = 1, math.min(#found, left) do claim(found[i]) end
  return #found <= left
end

local function of_gone(all_of)
  local gone = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', int(now), 'WITHSCORES', 'LIMIT', 0, MOST_WORKERS)
  for i = 1, #gone, 2 do
    local is_all = all_of(gone[i])
    -- The server may still deliver to a process that hangs.
    local over = tonumber(gone[i + 1]) + tonumber(ARGV[8]) <= now
    if is_all and over then redis.call('ZREM', KEYS[3], gone[i]) end
  end
end

-- Takes messages that a stream delivered to this worker when a connection broke.
local function of_own()
  if #taken == most then return end
  local found = redis.call('XPENDING', KEYS[1], group, 'IDLE', idle, '-', '+', most - #taken, own)
  for _, one in ipairs(found) do claim(one) end
end

-- Takes messages of workers that are not registered.
local function of_unknown()
  local found = redis.call('XPENDING', KEYS[1], group, 'IDLE', idle, ARGV[7], '+', MOST_LOOKED)
  for _, one in ipairs(found) do
    if #taken == most then return one[1] end
    local may = others >= 0 and one[3] >= others
    if string.sub(one[2], 1, #OURS) == OURS then may = not is_there(one[2]) end
    if may then claim(one) end
  end
  return #found == MOST_LOOKED and '(' .. found[#found][1] or '-'
end

if not is_there(own) then return {taken, ARGV[7]} end
if group == '' then
  of_gone(all_of_list)
  if taken[1] then redis.call('PEXPIRE', KEYS[2], ARGV[11]) end
  return {taken, '-'}
end
of_gone(all_of_stream)
of_own()
return {taken, of_unknown()}
