--- @include audit, flow/flow_open, flow/flow_store
-- Stores a flow: first its record and plan, then its jobs in calls of at most 1,000, then it is sealed, and begins. Each
-- call may be repeated. A flow that is not sealed within an hour is deleted by a worker that claims it.
-- KEYS[1]    the flow's record
-- KEYS[2]    its plan
-- KEYS[3]    the names of its jobs
-- KEYS[4]    the states of its jobs
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3]    the flow's number
-- ARGV[4]    open, add or seal
-- ARGV[5]    a mark of this submission
-- ARGV[6..]  open: the plan, fields and values of the record; add: the prefix of its jobs' keys, per job the values of
--            flow_store.lua; seal: the timeout in ms ('' for none), fields and values of the record
-- Returns 'stored'
--         'taken'  another flow has the number
--         'again'  the call is to be repeated
--         'none'   all numbers of jobs are used up
local now, record, flow = clock(ARGV[1]), KEYS[1], ARGV[3]
local is = read(KEYS[1], 'mw_mark', 'mw_sealed')

if ARGV[4] == 'open' and redis.call('EXISTS', record) == 0 then
  open_flow(flow, KEYS[2], ARGV[6], ARGV[5], now, 7)
  note_audit(ARGV[2], 'submit', record, redis.call('HGET', record, 'mw_name') or '', now)
  return respond('stored')
end
if is.mw_mark ~= ARGV[5] then return respond('taken') end
if is.mw_sealed or ARGV[4] == 'open' then return respond('stored') end

if ARGV[4] == 'add' then
  local a = 7
  while a <= #ARGV do
    local node, generation = ARGV[a], ARGV[a + 1]
    local behind, key = store_job(flow, ARGV[6], KEYS[3], a, now)
    if not behind then return respond(key) end
    if key then
      redis.call('HSET', key, 'mw_waiting', '"flow ' .. flow .. '"')
      redis.call('HSET', KEYS[4], node, 'w ' .. generation)
    end
    a = behind
  end
  return respond('stored')
end

redis.call('HSET', record, 'status', 'dispatched', 'mw_sealed', '1', updated(now, unpack(ARGV, 7)))
if ARGV[6] ~= '' then redis.call('HSET', record, 'mw_expires', int(now + tonumber(ARGV[6]))) end
try('ZADD', FLOWS_LIST, int(now), flow)
event('flow ' .. flow, 'submit', ARGV[2])
wake_flow(flow, now)
return respond('stored')
