--- @include base
-- Writing why a run failed: for good, or before the next one.
local function write_error(key, status, message, at)
  redis.call('HSET', key, 'status', status, 'error', message, 'updated_at', at)
end
