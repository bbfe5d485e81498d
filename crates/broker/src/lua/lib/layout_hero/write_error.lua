--- @include base
-- Writes the error of a run: the last one, or before a retry.
local function write_error(key, status, message, now)
  redis.call('HSET', key, 'status', status, 'error', message, updated(now))
end
