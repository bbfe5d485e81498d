--- @include claim/claim_fast, claim/claimable, dependencies/recorded_prerequisites
-- Records of foreign clients in a claim: jobs, and records that cannot be read.

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

-- Returns true or a reason to drop an id: no job, not to be claimed, or unreadable.
local function skip(id, key, is, from, queue, legacy)
  if not is.status and next(is) and not LEGACY then -- its key is that of a job
    count_foreign(is, queue)
    reject_unreadable(id, key, is, 'it has no status', ask.now, legacy)
    return true
  elseif not is.status then
    if next(is) then event(id, 'drop', ask.worker, 'no job: its hash has no status') end
    return true
  end
  local why = why_not_rescued(id, is)
  if is.mw_waiting or given[id] or defer_to_foreign(is, id, key, from, queue, legacy) then return true end
  if not takeable(is, id, from) then return true end
  count_foreign(is, queue)
  if why then reject_unreadable(id, key, is, why, ask.now, legacy) end
  return why
end
