-- Writes a record of a context from ARGV[from] on (see enqueue_args.lua): `VALUES` values of fields that every job has,
-- which NEW_FIELDS pairs with their names; the number of further strings, field, value, …
local function write_record(key, _, script_type, status, now, from)
  local _, at, _, ms = updated(now)
  redis.call('HSET', key, 'status', status, 'created_at', at, 'updated_at', at, 'mw_created_ms', ms, 'mw_updated_ms', ms,
    'script_type', script_type, NEW_FIELDS, unpack(ARGV, from + VALUES + 1, from + VALUES + tonumber(ARGV[from + VALUES])))
  redis.pcall('ZADD', INDEX, at, key)
end
