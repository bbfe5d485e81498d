--- @include flow/flow_moves, dependencies/dependencies, foreign_prerequisites, element
-- Moves of a step that takes up a flow of a plain client. Its jobs are in queues already, or wait for others in no queue.
local SEARCHED = 10000 -- entries of a queue that are searched for a job, the oldest first
local LONGEST_QUOTE = 60 -- bytes

-- Returns true if one of these does not exist. A job waits for it as long as its timeout, for others without a limit.
local function lacks(ids)
  for _, id in ipairs(ids) do if not status_of(id) then return true end end
end

-- Lets a job wait for the prerequisites in its record, for its timeout at most if `limited`. If they have ended and it is
-- in no queue, the watchdog queues it.
local function await_recorded(of, key, has, queue, limited)
  if has.mw_attempt or has.mw_reply then return end
  local seen, ids, open, why = {}, {}
  local field = read_prerequisites(key, has, seen, ids)
  if field then
    why = 'unreadable: its field `' .. field .. '` is no list of ' .. PREREQUISITES .. ': `'
      .. string.sub(has[field], 1, LONGEST_QUOTE) .. '`'
  elseif seen[key] then why = 'prerequisite ' .. key .. ' is the job itself'
  elseif #ids > MOST_PREREQUISITES then why = 'it has more than ' .. MOST_PREREQUISITES .. ' prerequisites'
  else open, why = unmet(ids, has.mw_on_failure, true) end
  if open and #open == 0 then
    if #ids == 0 or queue ~= '' and try('LPOS', queue, key, 'RANK', -1, 'MAXLEN', SEARCHED) then return end
    open = ids
  end
  redis.call('HDEL', key, 'mw_lock', 'mw_seen')
  unwatch(key)
  redis.call('HSET', key, 'mw_attempt', 0, 'mw_queue', queue)
  if open then await_prerequisites(key, key, queue, open, of.now, (limited or lacks(open)) and timeout_of(has) or nil)
  else fail_job(key, key, has, why, of.now, nil, '', false, field and 'unreadable' or 'prerequisite') end
end

-- Links a job to its flow: place, name, number, key, queue, the environment that was read, the new one ('' for no change),
-- 1 to count a missing job, 1 to limit its wait. A job whose environment has changed meanwhile is linked by a later step.
function flow_moves.join(of, a)
  local node, name, id, key, queue, before, env, missing, limited = unpack(ARGV, a, a + 8)
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
  -- A wait that a claim has begun has the same limit in a flow.
  if has.mw_waiting then
    if limited ~= '1' and not lacks(awaited(has.mw_waiting)) then redis.call('HDEL', key, 'mw_expires') end
    return
  end
  has.mw_queue, has.mw_with = has.mw_queue or queue, '1'
  await_recorded(of, key, has, has.mw_queue, limited == '1')
end

-- All jobs have joined: the plan
function flow_moves.plan(of, a) redis.call('SET', of.plan, ARGV[a]) end

-- The flow is listed: it has its plan, or its record is damaged
function flow_moves.list(of) redis.pcall('ZADD', FLOWS_LIST, int(of.now), of.flow) end
