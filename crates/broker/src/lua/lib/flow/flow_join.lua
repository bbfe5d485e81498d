--- @include flow/flow_moves
-- Moves of a step that takes up a flow of a plain client, whose jobs are in queues already, or wait for others.

-- Links a job to its flow: place, name, number, key, queue, the environment that was read, the new one ('' for no change),
-- 1 to count a missing job. A job whose environment has changed meanwhile is linked by a later step.
function flow_moves.join(of, a)
  local node, name, id, key, queue, before, env, missing = unpack(ARGV, a, a + 7)
  if redis.call('HEXISTS', of.nodes, node) == 1 then return end
  local has = record(key, 'env_vars', 'mw_flow')
  local state = 'r 0'
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
  end
  redis.call('HSET', of.names, name, id)
  redis.call('HSET', of.nodes, node, state)
end

-- All jobs have joined: the plan
function flow_moves.plan(of, a)
  redis.call('SET', of.plan, ARGV[a])
  redis.pcall('ZADD', FLOWS_LIST, int(of.now), of.flow)
end
