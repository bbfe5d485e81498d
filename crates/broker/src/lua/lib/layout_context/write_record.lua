-- Writes a record of a context from ARGV[from] on (see enqueue_args.lua): `VALUES` values of fields that every job has;
-- the number of further strings, field, value, …
local VALUES = 11
local function write_record(key, _, script_type, status, at, from)
  redis.call('HSET', key, 'status', status, 'created_at', at, 'updated_at', at, 'script_type', script_type,
    'id', ARGV[from], 'caller_id', ARGV[from + 1], 'context_id', ARGV[from + 2], 'script', ARGV[from + 3],
    'timeout', ARGV[from + 4], 'retries', ARGV[from + 5], 'env_vars', ARGV[from + 6], 'result', ARGV[from + 7],
    'prerequisites', ARGV[from + 8], 'dependends', ARGV[from + 9], 'mw_reply', ARGV[from + 10],
    unpack(ARGV, from + VALUES + 1, from + VALUES + tonumber(ARGV[from + VALUES])))
  redis.pcall('ZADD', INDEX, at, key)
end
