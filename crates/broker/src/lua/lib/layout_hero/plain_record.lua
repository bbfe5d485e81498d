-- Plain records: with exactly the fields of write_record.lua. Such a job has no options and has never run.
local PLAIN = 13 -- fields

-- Returns the values of a plain record without their names, id and status; nothing for another record.
local function plain_record(key)
  if try('HLEN', key) ~= PLAIN then return end
  local record = redis.call('HMGET', key, 'created_at', 'updated_at', 'script_type', 'caller_id', 'worker_id',
    'context_id', 'script', 'timeout', 'retries', 'concurrent', 'mw_reply', 'id', 'status')
  if record[PLAIN] ~= 'dispatched' then return end
  for i = 1, PLAIN - 1 do if not record[i] then return end end
  record[PLAIN], record[PLAIN - 1] = nil, nil
  return record
end
