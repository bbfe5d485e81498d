--- @include flow/flow_open
--- @flags allow-oom
-- Wakes a worker for each flow of a plain client that no step has taken up, and for each other one that has not ended and is
-- not among those that are due: its entry was lost.
-- KEYS[1..]  records of flows
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2..]  the numbers of these flows
-- Returns the numbers of these flows
local now, found = clock(ARGV[1]), {}

-- Returns true for a flow that is not due although a step has to begin, go on or end it.
local function is_lost(flow, has)
  local rests = final(has.status) and not has.mw_lease
  return (has.mw_mark or has.mw_plain) and not rests and not redis.call('ZSCORE', FLOWS_DUE, flow)
end

for i = 1, #KEYS do
  local flow, has = ARGV[i + 1], read(KEYS[i], 'status', 'caller_id', 'jobs', 'mw_mark', 'mw_plain', 'mw_lease')
  if has.status and (has.caller_id or has.jobs) and not has.mw_mark and not has.mw_plain and not final(has.status) then
    if not redis.call('ZSCORE', FLOWS_DUE, flow) then wake_flow(flow, now) end
    found[#found + 1] = flow
  elseif is_lost(flow, has) then
    redis.call('ZADD', FLOWS_DUE, int(now + (has.status and 0 or FORGOTTEN)), flow) -- without a status: not sealed yet
    if has.status then wake_flow(flow, now) end
    event('flow ' .. flow, 'requeue', 'watch')
    found[#found + 1] = flow
  end
end
return respond(found)
