--- @include base, json
-- Writes the error of a run: the last one, with a result for readers of the catalogue's fields; or before a retry.
local function write_error(key, status, message, now)
  redis.call('HSET', key, 'status', status, 'error', message, updated(now))
  if status == 'error' then redis.call('HSET', key, 'result', '{"error":' .. in_quotes(message) .. '}') end
end
