--- @include flow/flow_moves, dependencies/recorded_prerequisites
-- Moves of a step that takes up a flow of a plain client. Its jobs are in queues already, or wait for others in no queue.

-- Links a job to its flow: place, name, number, key, queue, the environment that was read, the new one ('' for no change),
-- 1 to count a missing job. A job whose environment has changed meanwhile is linked by a later step.
function flow_moves.join(of, a)
  local node, name, id, key, queue, before, env, missing = unpack(ARGV, a, a + 7)
  if redis.call('HEXISTS', of.nodes, node) == 1 then return end
  local has = record(key, 'env_vars', 'mw_flow', 'mw_waiting', 'mw_attempt', 'mw_on_failure', 'dependends',
    'prerequisites', 'timeout')
  local state, joins = 'r 0', false
  if not has.status then
    if missing ~= '1' then return end
  elseif final(has.status) then
    state = (has.status == 'finished' and 'f' or 'e') .. ' 0 ' .. next_end(of.record)
  elseif not has.mw_flow then
    if env ~= '' and has.status ~= 'started' then
      if (has.env_vars or '') ~= before then return end
      redis.call('HSET', key, 'env_vars', env)
    end
    redis.call('HSET', key, 'mw_flow', of.flow, 'mw_node', node, 'mw_generation', '0', 'mw_name', name, 'mw_with', '1')
    if queue ~= '' then redis.call('HSETNX', key, 'mw_queue', queue) end
    joins = is_dispatched(has.status)
  end
  redis.call('HSET', of.names, name, id)
  redis.call('HSET', of.nodes, node, state)
  if not joins then return end
  -- A wait that a claim has begun has no limit in a flow either.
  if has.mw_waiting then
    if not limit_of(has, awaited(has.mw_waiting), true) then redis.call('HDEL', key, 'mw_expires') end
    return
  end
  has.mw_queue, has.mw_with = has.mw_queue or queue, '1'
  waits(key, key, has, has.mw_queue, of.now, nil, true)
end

-- All jobs have joined: the plan
function flow_moves.plan(of, a) redis.call('SET', of.plan, ARGV[a]) end

-- The flow is listed: it has its plan, or its record is damaged
function flow_moves.list(of) redis.pcall('ZADD', FLOWS_LIST, int(of.now), of.flow) end
