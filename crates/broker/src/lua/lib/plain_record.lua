-- Records that have the fields of those that our clients store (write_record.lua) and no other: such a job wishes for
-- nothing and has never run.
local PLAIN = 13 -- fields

-- The values of such a record, without their names; nothing of another.
local function plain_record(key)
  if redis.pcall('HLEN', key) ~= PLAIN then return end
  local record = redis.call('HMGET', key, 'status', 'created_at', 'updated_at', 'id', 'script_type', 'caller_id',
    'worker_id', 'context_id', 'script', 'timeout', 'retries', 'concurrent', 'mw_reply')
  if record[1] ~= 'dispatched' then return end
  for i = 2, PLAIN do
    if not record[i] then return end
  end
  return record
end
