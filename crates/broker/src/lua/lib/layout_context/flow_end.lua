--- @include telemetry
-- Flows: effects of the start and the end of a job on its flow. A step decides what happens next (flow/commit.lua).

-- Wakes a worker for a flow. A step that runs already notices the change by `mw_dirty`.
local function wake_flow(flow, now)
  local record = FLOW .. flow
  redis.call('HINCRBY', record, 'mw_dirty', 1)
  if redis.call('HEXISTS', record, 'mw_lease') == 1 then return end
  try('ZADD', FLOWS_DUE, int(now), flow)
  if try('LLEN', FLOW_QUEUE) == 0 then try('LPUSH', FLOW_QUEUE, record) end
end

-- Counts the ends of a flow's jobs: a job that ended later has the greater number.
local function next_end(record) return int(redis.call('HINCRBY', record, 'mw_ends', 1)) end

-- Counts the end of an item of a `foreach`. Returns true if no step has to run: other items still run, and this kind of
-- end was marked as without effect (`calm` in flow_moves.lua).
local function is_calm(record, nodes, node, how)
  local job, open = string.match(node, '^(%d+)%.'), 'mw_open:' .. (string.match(node, '^%d+') or '')
  if not job or redis.call('HEXISTS', record, open) == 0 then return false end
  local left = redis.call('HINCRBY', record, open, -1)
  if left <= 0 then redis.call('HDEL', record, open) end
  local calm = left > 0 and string.match(redis.call('HGET', nodes, job) or '', '^g %d+ %d+ (%l+)$') or ''
  return string.find(calm, how, 1, true) ~= nil
end

-- Records the end of a job in its flow, if the job has the current generation. Returns true while the flow runs: its
-- jobs are exempt from retention.
local function end_in_flow(has, status, now)
  local flow, record = has.mw_flow, FLOW .. has.mw_flow
  local state = try('HGET', record, 'status')
  if type(state) ~= 'string' or final(state) then return false end
  local nodes, generation = FLOWS .. flow .. ':nodes', has.mw_generation or ''
  local place = try('HGET', nodes, has.mw_node)
  -- Only a step ends an approval or a wait.
  if place == 'q ' .. generation then wake_flow(flow, now) end
  if place ~= 'r ' .. generation then return true end
  local how = status == 'finished' and 'f' or has.mw_stop and 'c' or 'e'
  redis.call('HSET', nodes, has.mw_node, how .. ' ' .. generation .. ' ' .. next_end(record))
  if not is_calm(record, nodes, has.mw_node, how) then wake_flow(flow, now) end
  return true
end

-- Marks a flow as started when its first job starts.
local function start_in_flow(flow, now)
  local record = FLOW .. flow
  if try('HGET', record, 'status') == 'dispatched' then
    redis.call('HSET', record, 'status', 'started', updated(now))
  end
end
