--- @include json
-- Attempts of a job that failed or were lost: one JSON object in each line of a field, the newest last.
local MOST_FAILED = 10
local LONGEST_FAILED_ERROR = 500 -- bytes: the record has the whole error of the last one
local LONGEST_FAILED = 40000 -- bytes of a field that are kept, whatever another client wrote

-- Returns a number of the record for JSON.
local function in_json(text)
  local number = tonumber(text or '')
  return number and number >= 0 and number < 1e15 and int(number) or 'null'
end

-- Adds an attempt that has just ended. `has` needs mw_failed_attempts, mw_attempt, mw_started and mw_worker.
local function note_attempt(key, has, outcome, message, now)
  local kept = {}
  for line in string.gmatch(string.sub(has.mw_failed_attempts or '', -LONGEST_FAILED), '[^\n]+') do
    kept[#kept + 1] = line
  end
  kept[#kept + 1] = string.format('{"number":%s,"started":%s,"ended":%s,"worker":%s,"outcome":"%s","error":%s}',
    in_json(has.mw_attempt), in_json(has.mw_started), int(now), in_quotes(has.mw_worker or ''), outcome,
    in_quotes(string.sub(message, 1, LONGEST_FAILED_ERROR)))
  local from = math.max(1, #kept - MOST_FAILED + 1)
  redis.call('HSET', key, 'mw_failed_attempts', table.concat(kept, '\n', from))
end
