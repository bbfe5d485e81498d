--- @include flow_end
--- @flags allow-oom
-- Wakes a worker for each flow of a plain client that no step has taken up.
-- KEYS[1..]  records of flows
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2..]  the numbers of these flows
-- Returns the numbers of flows that no step has taken up
local now, found = clock(ARGV[1]), {}
for i = 1, #KEYS do
  local flow, has = ARGV[i + 1], read(KEYS[i], 'status', 'caller_id', 'jobs', 'mw_mark', 'mw_plain')
  if has.status and (has.caller_id or has.jobs) and not has.mw_mark and not has.mw_plain and not final(has.status) then
    if not redis.call('ZSCORE', FLOWS_DUE, flow) then wake_flow(flow, now) end
    found[#found + 1] = flow
  end
end
return respond(found)
