-- Writing a record. What our clients say of every job comes without names (enqueue_args.lua): `VALUES` strings from
-- ARGV[from] on; then how many strings follow of what only some say: field, value, …
local VALUES = 8
local function write_record(key, id, script_type, status, at, from)
  redis.call('HSET', key, 'status', status, 'created_at', at, 'updated_at', at, 'id', id, 'script_type', script_type,
    'caller_id', ARGV[from], 'worker_id', ARGV[from + 1], 'context_id', ARGV[from + 2], 'script', ARGV[from + 3],
    'timeout', ARGV[from + 4], 'retries', ARGV[from + 5], 'concurrent', ARGV[from + 6], 'mw_reply', ARGV[from + 7],
    unpack(ARGV, from + VALUES + 1, from + VALUES + tonumber(ARGV[from + VALUES])))
end
