--- @include base, json
-- Writing why a run failed: for good, with a result that says so to readers of the catalogue's fields; or before the
-- next one.
local function write_error(key, status, message, at)
  redis.call('HSET', key, 'status', status, 'error', message, 'updated_at', at)
  if status == 'error' then redis.call('HSET', key, 'result', '{"error":' .. in_quotes(message) .. '}') end
end
