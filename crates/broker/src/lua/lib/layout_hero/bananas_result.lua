--- @include complete/publish_result, json
-- Ends of jobs that were imported from Bananas (import_bananas.lua), written there. The import noted the places of fields.

-- Returns the record with new values; per place: its first and last byte, the field, the text before the value.
local function spliced(record, places, values)
  local text, at = {}, 1
  for from, to, field, before in string.gmatch(places, '(%d+) (%d+) (%S+) ([^\n]*)\n') do
    if values[field] then
      text[#text + 1] = string.sub(record, at, tonumber(from)) .. before .. values[field]
      at = tonumber(to) + 1
    end
  end
  return table.concat(text) .. string.sub(record, at)
end

-- Returns the keys of a job there, and its channel. Whoever writes the record may have named other keys, and no context is
-- Bananas.
local function names_there(id, text)
  local record, result, channel = string.match(text or '', '^(%S+) (%S+) (%S+)')
  local prefix = record and string.sub(record, 1, -#id - 6)
  local fits = prefix and record == prefix .. ':job:' .. id and result == prefix .. ':result:' .. id
    and channel == prefix .. ':result:notify:' .. id and not string.find(prefix, '^{ctx:')
  if fits then return record, result, channel end
end

-- Writes the end there. A key of another kind, or without rights, does not keep the job from ending here.
local function tell_bananas(id, key, good, payload, now)
  local has = read(key, 'mw_bananas', 'mw_record', 'mw_places', 'mw_started', 'mw_attempt')
  local record, result, channel = names_there(id, has.mw_bananas)
  if not record then return end
  local took = int(math.max(0, now - (tonumber(has.mw_started or '') or now)))
  local name = not good and 'error' or payload ~= '' and 'result' or nil
  pcall(publish_result, result, channel, now, took, name, payload)
  local kind = redis.pcall('TYPE', record).ok
  if not has.mw_record or not (kind == 'string' or kind == 'none') then return end
  local values = {updated_at = '"' .. string.sub(iso(now), 1, 23) .. '000Z"', scheduled_for = ''}
  values.status = good and '"completed"' or '"failed"'
  if not good then
    values.attempts, values.error = tonumber(has.mw_attempt or '') and has.mw_attempt or '0', in_quotes(payload)
  end
  redis.pcall('SET', record, spliced(has.mw_record, has.mw_places or '', values), 'PX',
    good and COMPLETED_FOR or DEAD_FOR)
end
