-- Takes over what workers that are gone had in hand, and counts each as lost once more.
-- KEYS    the queue, what this worker has in hand, who takes from the list
-- ARGV    now, group ('' for a list), worker, most, how long a message of a stream was not renewed in ms, the same for
--         those of other makes of workers (-1 for never), the id in the stream to look from, how long a wait of a worker
--         that is gone may outlast it in ms, what the keys of tries begin with, what those of hands begin with, how long
--         what is in hand waits for the next worker in ms
-- Returns per message: id, how often it was given, how often lost, its fields; and the id to look from next time
local MOST_LOOKED = 100 -- in one call: messages of a stream, workers of a list
local OURS = 'mw.' -- what the names of our workers begin with
local taken, most = {}, tonumber(ARGV[4])

local function take(id, given, message, fields)
  local key = ARGV[9] .. redis.sha1hex(message)
  local lost = redis.call('HINCRBY', key, 'lost', 1)
  redis.call('PEXPIRE', key, TRIES_FOR)
  taken[#taken + 1] = {id, given, lost, fields}
end

local function of_list(now)
  local gone = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', whole(now), 'WITHSCORES', 'LIMIT', 0, MOST_LOOKED)
  for i = 1, #gone, 2 do
    local hand, more = ARGV[10] .. gone[i], gone[i] ~= ARGV[3]
    while more and #taken < most do
      local message = redis.call('LMOVE', hand, KEYS[2], 'RIGHT', 'LEFT')
      if not message then break end
      take('', 0, message, {'data', message})
    end
    -- A process that hangs waits on in the server's eyes, and a message may still come to it.
    local over = tonumber(gone[i + 1]) + tonumber(ARGV[8]) <= now
    if more and over and redis.call('EXISTS', hand) == 0 then redis.call('ZREM', KEYS[3], gone[i]) end
  end
  if taken[1] then redis.call('PEXPIRE', KEYS[2], ARGV[11]) end
  return '-'
end

local function of_stream()
  local idle, others = tonumber(ARGV[5]), tonumber(ARGV[6])
  local found = redis.call('XPENDING', KEYS[1], ARGV[2], 'IDLE', idle, ARGV[7], '+', MOST_LOOKED)
  for _, one in ipairs(found) do
    if #taken == most then return one[1] end
    local may = string.sub(one[2], 1, #OURS) == OURS or (others >= 0 and one[3] >= others)
    local entry = may and redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, one[1])[1]
    if entry then
      local message = ''
      for i = 1, #entry[2], 2 do
        if entry[2][i] == 'data' then message = entry[2][i + 1] end
      end
      take(one[1], one[4] + 1, message, entry[2])
    end
  end
  return #found == MOST_LOOKED and '(' .. found[#found][1] or '-'
end

local from = ARGV[2] == '' and of_list(clock(ARGV[1])) or of_stream()
return {taken, from}
