--- @include enqueue_fast
-- Stores a child of a running job and pushes its id, if the token is the one in force and nobody wants the job
-- stopped. What a call of that number has submitted before stays as it is, also where it is forgotten by now.
-- KEYS    1: the running job's hash
--         2: the child's hash
--         3: its queue
-- ARGV    1: now
--         2: who
--         3: token
--         4: the child's number
--         5: the digest of what it is to be
--         … the child, as enqueue takes it
-- Returns what enqueue does of a job ('exists': submitted before), 'differs ' and the digest of what was submitted
--         before, 'taken' if another job has its id, 'stopping', or 'stale' if the job is not this worker's any more
local field = 'mw_child_' .. ARGV[4]
local has = read(KEYS[1], 'status', 'mw_token', 'mw_stop', 'mw_children', 'mw_calls', field)
if has.status ~= 'started' or has.mw_token ~= ARGV[3] then return 'stale' end
if has.mw_stop then return 'stopping' end
if has[field] then return has[field] == ARGV[5] and 'exists' or 'differs ' .. has[field] end
local now = clock(ARGV[1])
local id, script_type, o, from = read_args(6)
local answer = store(id, KEYS[2], KEYS[3], script_type, o, from, now, stamp(now), ARGV[2])
if answer == 'exists' then return 'taken' end
if answer == 'stored' then
  local children = (tonumber(has.mw_children or '') or 0) + 1
  local highest = math.max(tonumber(has.mw_calls or '') or 0, tonumber(ARGV[4]))
  redis.call('HSET', KEYS[1], field, ARGV[5], 'mw_children', int(children), 'mw_calls', int(highest))
end
push_all()
return respond(answer)
