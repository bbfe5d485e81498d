--- @include claim/claim_fast, claim/claimable, dependencies/dependencies, foreign_prerequisites, element
-- Records of foreign clients in a claim: jobs, records that cannot be read, and prerequisites.

-- Patterns of all UTF-8 characters beyond ASCII.
local CHARACTERS = {'[\194-\223][\128-\191]', '\224[\160-\191][\128-\191]', '\237[\128-\159][\128-\191]',
  '[\225-\236\238\239][\128-\191][\128-\191]', '\240[\144-\191][\128-\191][\128-\191]',
  '[\241-\243][\128-\191][\128-\191][\128-\191]', '\244[\128-\143][\128-\191][\128-\191]'}
local function is_text(text)
  for _, character in ipairs(CHARACTERS) do
    if not string.find(text, '[\128-\255]') then return true end
    text = string.gsub(text, character, ' ')
  end
  return not string.find(text, '[\128-\255]')
end

local LONGEST_QUOTE = 60 -- bytes: enough to find the client that wrote it
local function quoted(text) return '`' .. string.sub(text, 1, LONGEST_QUOTE) .. '`' end

-- Returns why a job cannot run by its record, nothing if it can. An unknown status becomes 'dispatched'.
local function why_not_rescued(id, is)
  local status = is.status
  local known = status == '' or status == 'dispatched' or status == 'started' or final(status)
  if not known then is.status = 'dispatched' end
  -- Hero's status of a job with prerequisites, which are checked later.
  if not known and status ~= 'waiting_for_prerequisites' then return 'its status is ' .. quoted(status) end
  if not string.find(is.script or '', '%S') then return 'it has no script' end
  if not is_text(id) then return 'its id is no valid utf-8' end
end

-- Makes a job that cannot be read a dead letter.
local function reject_unreadable(id, key, is, queue, why, now, legacy)
  if legacy then is.mw_legacy = '1' end
  redis.call('HSET', key, 'mw_queue', is.mw_queue, unpack(legacy and {'mw_legacy', '1'} or {}))
  fail_job(id, key, is, 'unreadable: ' .. why, now, 'unreadable', '', false, 'unreadable')
end

-- Returns true or a reason to drop an id: no job, not to be claimed, or unreadable.
local function skip(id, key, is, from, queue, legacy)
  if not is.status and next(is) and not LEGACY then -- its key is that of a job
    count_foreign(is, queue)
    reject_unreadable(id, key, is, queue, 'it has no status', ask.now, legacy)
    return true
  elseif not is.status then
    if next(is) then event(id, 'drop', ask.worker, 'no job: its hash has no status') end
    return true
  end
  local why = why_not_rescued(id, is)
  if is.mw_waiting or given[id] or defer_to_foreign(is, id, key, from, queue, legacy) then return true end
  if not takeable(is, id, from) then return true end
  count_foreign(is, queue)
  if why then reject_unreadable(id, key, is, queue, why, ask.now, legacy) end
  return why
end

-- Returns true if a job has to wait for prerequisites or can never run, and the number of prerequisites checked. Foreign
-- clients push a job before its prerequisites have ended; after the first attempt they are not checked again.
local function waits(id, key, is, queue, now, legacy)
  if is.mw_reply or is.mw_attempt then return false, 0 end
  local seen, ids, open, why = {}, {}
  local unreadable = read_prerequisites(id, is, seen, ids)
  if unreadable then
    local list = 'its field `' .. unreadable .. '` is no list of ' .. PREREQUISITES .. ': ' .. quoted(is[unreadable])
    reject_unreadable(id, key, is, queue, list, now, legacy)
    return true, #ids
  end
  if seen[id] then why = 'prerequisite ' .. id .. ' is the job itself'
  elseif #ids > MOST_PREREQUISITES then why = 'it has more than ' .. MOST_PREREQUISITES .. ' prerequisites'
  else open, why = unmet(ids, is.mw_on_failure, true) end
  if open and #open == 0 then return false, #ids end
  redis.call('HDEL', key, 'mw_lock', 'mw_seen')
  unwatch(id)
  redis.call('HSET', key, 'mw_attempt', 0, 'mw_queue', queue)
  if legacy then
    redis.call('HSET', key, 'mw_legacy', '1')
    is.mw_legacy = '1'
  end
  if not open then fail_job(id, key, is, why, now, nil, '', false, 'prerequisite')
  else await_prerequisites(id, key, queue, open, now, timeout_of(is)) end
  return true, #ids
end
