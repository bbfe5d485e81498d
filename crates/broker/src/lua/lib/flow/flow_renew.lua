--- @include flow/flow_moves
-- Moves of a step that executes a retry: see flow_moves.lua.

-- Resets a record to that of a job that never ran, with a new generation.
local function as_new(of, key, generation, status)
  for _, set in ipairs({ENDED, DEAD, STOPS}) do try('ZREM', set, key) end
  unwatch(key)
  redis.call('DEL', LOG .. key)
  redis.call('HDEL', key, OUTPUT, 'error', 'mw_traceback', 'mw_stdout', 'mw_stderr', 'mw_token', 'mw_attempt', 'mw_lost',
    'mw_started', 'mw_dead', 'mw_stop', 'mw_progress', 'mw_snoozes', 'mw_snoozed', 'mw_outcome', 'mw_answer',
    'mw_question', 'mw_until', 'mw_alone', 'mw_item_results', 'mw_item_errors')
  redis.call('HSET', key, 'status', status, 'mw_generation', generation,
    'mw_waiting', '"flow ' .. of.flow .. '"', updated(of.now))
  event(key, 'requeue', 'flow ' .. of.flow)
end

-- A place runs again: place, state that was read, new state ('' for none), generation, key ('' if none is stored),
-- status, the number of items that have not ended ('' if none is expanded)
function flow_moves.renew(of, a)
  local node, seen, to, generation, key, status, open = unpack(ARGV, a, a + 6)
  if not moves(of, node, seen, to) then return end
  if to == '' then redis.call('HDEL', of.nodes, node) end
  if open ~= '' then redis.call('HSET', of.record, 'mw_open:' .. node, open) end
  if key ~= '' and exists(key) then as_new(of, key, generation, status) end
end

-- A job that a plain runner failed runs again: place, generation, key, queue, pause in ms, error
function flow_moves.rerun(of, a)
  local node, generation, key, queue, pause, text = unpack(ARGV, a, a + 5)
  local has = record(key, 'mw_attempt')
  if redis.call('HGET', of.nodes, node) ~= 'r ' .. generation or has.status ~= 'error' then return end
  -- The next run may write its error into the result only.
  redis.call('HDEL', key, 'error')
  redis.call('HSET', key, 'status', 'dispatched', OUTPUT, '{}', 'mw_attempt',
    int((tonumber(has.mw_attempt or '') or 0) + 1), updated(of.now))
  event(key, 'retry', 'flow ' .. of.flow, text)
  count(queue, 'retried')
  if type(redis.pcall('ZADD', DELAYED, int(of.now + tonumber(pause)), key)) ~= 'number' then
    deliver('LPUSH', key, key, has, queue, of.now)
  end
end

-- Deletes an item of a foreach that is expanded again: place, name
function flow_moves.forget(of, a)
  redis.call('HDEL', of.nodes, ARGV[a])
  redis.call('HDEL', of.names, ARGV[a + 1])
end

-- All places of a retry wait to run: the numbers of the flow's jobs, and the ms until its timeout ('' for none)
function flow_moves.renewed(of, a)
  redis.call('HSET', of.record, 'jobs', ARGV[a], updated(of.now))
  if ARGV[a + 1] ~= '' then redis.call('HSET', of.record, 'mw_expires', int(of.now + tonumber(ARGV[a + 1]))) end
  redis.call('HDEL', of.record, 'mw_retry')
end

-- Jobs that retention may not delete, since the flow runs again: keys
function flow_moves.hold(of, a, n) redis.call('ZREM', ENDED, unpack(ARGV, a, a + n - 1)) end
