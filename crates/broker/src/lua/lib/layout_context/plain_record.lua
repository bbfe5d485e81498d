--- @include element
-- Plain records: with exactly the fields of write_record.lua. Such a job has no options and has never run.

-- Returns the values of a plain record without their names, id and status; nothing for another record or a key of
-- another context.
local function plain_record(key)
  if not names_job(key) or try('HLEN', key) ~= PLAIN_FIELDS then return end
  local record = redis.call('HMGET', key, CLAIMED_FIELDS, 'id', 'status')
  if record[PLAIN_FIELDS] ~= 'dispatched' then return end
  for i = 1, PLAIN_FIELDS - 1 do if not record[i] then return end end
  record[PLAIN_FIELDS], record[PLAIN_FIELDS - 1] = nil, nil
  return record
end
