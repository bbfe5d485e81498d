-- Writes a record from ARGV[from] on (see enqueue_args.lua): `VALUES` values of fields that every job has; the number
-- of further strings, field, value, …
local VALUES = 8
local function write_record(key, id, script_type, status, at, from)
  redis.call('HSET', key, 'status', status, 'created_at', at, 'updated_at', at, 'id', id, 'script_type', script_type,
    'caller_id', ARGV[from], 'worker_id', ARGV[from + 1], 'context_id', ARGV[from + 2], 'script', ARGV[from + 3],
    'timeout', ARGV[from + 4], 'retries', ARGV[from + 5], 'concurrent', ARGV[from + 6], 'mw_reply', ARGV[from + 7],
    unpack(ARGV, from + VALUES + 1, from + VALUES + tonumber(ARGV[from + VALUES])))
end
