--- @include enqueue/enqueue_fast
-- Enqueues a child of a running job, if the token is the current one and the job is not to be cancelled. A child that
-- was enqueued under the same number before stays as it is, even if it is deleted by now.
-- KEYS[1]    the running job's hash
-- KEYS[2]    the child's hash
-- KEYS[3]    the child's queue
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3]    the fencing token
-- ARGV[4]    the child's number
-- ARGV[5]    the digest of the child
-- ARGV[6..]  the child as in enqueue.lua
-- Returns the answer of enqueue.lua ('exists': enqueued before), or
--         'differs DIGEST'  another child was enqueued under that number
--         'taken'           another job has the child's id
--         'stopping'        the running job is to be cancelled
--         'stale'           the token is not the current one
local field = 'mw_child_' .. ARGV[4]
local has = read(KEYS[1], 'status', 'mw_token', 'mw_stop', 'mw_children', 'mw_calls', field)
if has.status ~= 'started' or has.mw_token ~= ARGV[3] then return 'stale' end
if has.mw_stop then return 'stopping' end
if has[field] then return has[field] == ARGV[5] and 'exists' or 'differs ' .. has[field] end
local now = clock(ARGV[1])
local id, script_type, o, from = read_args(6)
local answer = store(id, KEYS[2], KEYS[3], script_type, o, from, now, ARGV[2])
if answer == 'exists' then return 'taken' end
if answer == 'stored' then
  local children = (tonumber(has.mw_children or '') or 0) + 1
  local highest = math.max(tonumber(has.mw_calls or '') or 0, tonumber(ARGV[4]))
  redis.call('HSET', KEYS[1], field, ARGV[5], 'mw_children', int(children), 'mw_calls', int(highest))
end
push_all(now)
return respond(answer)
