--- @include element
-- Records that have the fields of those that our clients store (write_record.lua) and no other: such a job wishes for
-- nothing and has never run.
local PLAIN = 15 -- fields

-- The values of such a record, without their names; nothing of another, or of what is no job of this context.
local function plain_record(key)
  if not names_job(key) or redis.pcall('HLEN', key) ~= PLAIN then return end
  local record = redis.call('HMGET', key, 'status', 'created_at', 'updated_at', 'script_type', 'id', 'caller_id',
    'context_id', 'script', 'timeout', 'retries', 'env_vars', 'result', 'prerequisites', 'dependends', 'mw_reply')
  if record[1] ~= 'dispatched' then return end
  for i = 2, PLAIN do
    if not record[i] then return end
  end
  return record
end
