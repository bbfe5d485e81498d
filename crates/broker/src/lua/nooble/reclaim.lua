--- @include base
--- @flags allow-oom
-- Takes over what workers that are gone had in hand, and counts each as lost once more. Who is not known to be there itself
-- takes nothing: nobody would take that over from it.
-- KEYS    the queue, what this worker has in hand, who takes from the queue
-- ARGV    now, group ('' for a list), worker, most, how long a message of a stream was not renewed that nobody who is there
--         knows of in ms, the same for those of other makes of workers (-1 for never), the id in the stream to look from,
--         how long a wait of a worker that is gone may outlast it in ms, what the keys of tries begin with, what those of
--         hands begin with, how long what is in hand waits for the next worker in ms
-- Returns per message: id, how often it was given, how often lost, its fields; and the id to look from next time
local MOST_WORKERS = 1000 -- in one call
local MOST_LOOKED = 100 -- in one call: messages of a stream, whosever they are
local OURS = 'mw.' -- what the names of our workers begin with
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

-- Takes what a worker that is gone has in hand. Returns whether that was all.
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
    -- A process that hangs waits on in the server's eyes, and a message may still come to it.
    local over = tonumber(gone[i + 1]) + tonumber(ARGV[8]) <= now
    if is_all and over then redis.call('ZREM', KEYS[3], gone[i]) end
  end
end

-- What a stream gave to this worker when a connection broke.
local function of_own()
  if #taken == most then return end
  local found = redis.call('XPENDING', KEYS[1], group, 'IDLE', idle, '-', '+', most - #taken, own)
  for _, one in ipairs(found) do claim(one) end
end

-- What is in the hands of others, of which no list tells.
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
