--- @include flow_end
-- Stores the record and the plan of a flow, without jobs.
local FORGOTTEN = 3600000 -- ms after which a flow that is not sealed is deleted: longer than any submission takes

-- `from` is where the fields and values of the record begin in ARGV.
local function open_flow(flow, plan_key, plan, mark, now, from)
  redis.call('ZADD', FLOWS_DUE, int(now + FORGOTTEN), flow)
  redis.call('SET', plan_key, plan)
  redis.call('HSET', FLOW .. flow, 'mw_mark', mark, created(now, updated(now, unpack(ARGV, from))))
end
