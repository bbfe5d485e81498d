-- Writes a record from ARGV[from] on (see enqueue_args.lua): `VALUES` values of fields that every job has, which
-- NEW_FIELDS pairs with their names; the number of further strings, field, value, …
local function write_record(key, id, script_type, status, now, from)
  local at = iso(now)
  redis.call('HSET', key, 'status', status, 'created_at', at, 'updated_at', at, 'id', id, 'script_type', script_type,
    NEW_FIELDS, unpack(ARGV, from + VALUES + 1, from + VALUES + tonumber(ARGV[from + VALUES])))
end
