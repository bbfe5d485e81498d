--- @include dependencies/dependencies, foreign_prerequisites, element
-- Prerequisites that a foreign client has written into a record, whether they have ended or not.
local SEARCHED = 10000 -- entries of a queue that are searched for a job, the oldest first

local LONGEST_QUOTE = 60 -- bytes: enough to find the client that wrote it
local function quoted(text) return '`' .. string.sub(text, 1, LONGEST_QUOTE) .. '`' end

-- Makes a job that cannot be read a dead letter.
local function reject_unreadable(id, key, is, why, now, legacy)
  if legacy then is.mw_legacy = '1' end
  redis.call('HSET', key, 'mw_queue', is.mw_queue, unpack(legacy and {'mw_legacy', '1'} or {}))
  fail_job(id, key, is, 'unreadable: ' .. why, now, 'unreadable', '', false, 'unreadable')
end

-- Returns how long a job waits for these: for those of its flow without a limit, since they end.
local function limit_of(is, open, in_flow)
  for _, id in ipairs(open) do if not status_of(id) then in_flow = false end end
  return not in_flow and timeout_of(is) or nil
end

-- Returns true if a job has to wait for prerequisites or can never run, and the number of prerequisites checked. Foreign
-- clients push a job before its prerequisites have ended; after the first attempt they are not checked again. In a flow,
-- a job may also be in no queue until they have ended: then it waits until the watchdog has seen their ends.
local function waits(id, key, is, queue, now, legacy, in_flow)
  if is.mw_reply or is.mw_attempt then return false, 0 end
  local seen, ids, open, why = {}, {}
  local unreadable = read_prerequisites(id, is, seen, ids)
  if unreadable then
    local list = 'its field `' .. unreadable .. '` is no list of ' .. PREREQUISITES .. ': ' .. quoted(is[unreadable])
    reject_unreadable(id, key, is, list, now, legacy)
    return true, #ids
  end
  if seen[id] then why = 'prerequisite ' .. id .. ' is the job itself'
  elseif #ids > MOST_PREREQUISITES then why = 'it has more than ' .. MOST_PREREQUISITES .. ' prerequisites'
  else open, why = unmet(ids, is.mw_on_failure, true) end
  if open and #open == 0 then
    if not in_flow or #ids == 0 then return false, #ids end
    if queue ~= '' and try('LPOS', queue, id, 'RANK', -1, 'MAXLEN', SEARCHED) then return false, #ids end
    open = ids
  end
  redis.call('HDEL', key, 'mw_lock', 'mw_seen')
  unwatch(id)
  redis.call('HSET', key, 'mw_attempt', 0, 'mw_queue', queue)
  if legacy then
    redis.call('HSET', key, 'mw_legacy', '1')
    is.mw_legacy = '1'
  end
  if not open then fail_job(id, key, is, why, now, nil, '', false, 'prerequisite')
  else await_prerequisites(id, key, queue, open, now, limit_of(is, open, in_flow)) end
  return true, #ids
end
