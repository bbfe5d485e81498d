--- @include complete/ending, flow/flow_store, audit
-- Moves of a step. Each changes nothing unless the state is the one that was read. `of` is shared by the moves of a call.

-- Changes the state of a place, if it is still the one that the step has read.
local function moves(of, node, from, to)
  if (redis.call('HGET', of.nodes, node) or '') ~= from then return false end
  redis.call('HSET', of.nodes, node, to)
  return true
end

-- Starts a stored job: adds it to its queue, or marks it as started if it has none.
local function start(of, key, queue)
  local has = record(key)
  redis.call('HDEL', key, 'mw_waiting')
  event(key, 'ready', 'flow ' .. of.flow)
  if queue ~= '' then
    redis.call('HSET', key, 'mw_queue', queue, updated(of.now))
    deliver('LPUSH', key, key, has, queue, of.now, true)
  else
    redis.call('HSET', key, 'status', 'started', updated(of.now))
  end
end

local flow_moves = {
  -- a job of the plan may run: place, generation, key, queue, field, value, …
  release = function(of, a, n)
    local node, generation, key, queue = unpack(ARGV, a, a + 3)
    local state = queue == '' and 'q ' or 'r ' -- q: an open approval or a delay, whose end no worker reports
    if not moves(of, node, 'w ' .. generation, state .. generation) then return end
    if n > 4 then redis.call('HSET', key, unpack(ARGV, a + 4, a + n - 1)) end
    start(of, key, queue)
  end,

  -- an item of a foreach may run: what keys begin with, queue, then as `store_job` takes it
  add = function(of, a)
    local behind, key, id = store_job(of.flow, ARGV[a], of.names, a + 2, of.now)
    if not behind then return key end
    if not key then return end
    redis.call('HSET', of.nodes, ARGV[a + 2], 'r ' .. ARGV[a + 3])
    of.added[#of.added + 1] = id
    start(of, key, ARGV[a + 1])
  end,

  -- a foreach has so many items: place, generation, number, key
  expand = function(of, a)
    local node, generation, items, key = unpack(ARGV, a, a + 3)
    if not moves(of, node, 'w ' .. generation, 'g ' .. generation .. ' ' .. items) then return end
    redis.call('HSET', of.record, 'mw_open:' .. node, items)
    redis.call('HDEL', key, 'mw_waiting')
    redis.call('HSET', key, 'status', 'started', updated(of.now))
  end,

  -- all items of a foreach are released, and only the last end has an effect: place, state that was read, ends
  calm = function(of, a)
    local node, seen, ends = unpack(ARGV, a, a + 2)
    moves(of, node, seen, seen .. ' ' .. ends)
  end,

  -- a place ends without a run: place, state that was read, how, generation, key ('' if not stored), status, result; for a
  -- foreach also results and errors of its items
  finalize = function(of, a, n)
    local node, seen, how, generation, key, status, text = unpack(ARGV, a, a + 6)
    if (redis.call('HGET', of.nodes, node) or '') ~= seen then return end
    redis.call('HSET', of.nodes, node, how .. ' ' .. generation .. ' ' .. next_end(of.record))
    is_calm(of.record, of.nodes, node, how)
    if key == '' or not exists(key) then return end
    local has = record(key)
    if final(has.status) then
      -- A plain runner may have written its error into the result only.
      if status == 'error' and text ~= '' then redis.call('HSET', key, 'error', text) end
      return
    end
    redis.call('HDEL', key, 'mw_waiting')
    if how == 's' then redis.call('HSET', key, 'mw_outcome', 'skipped') end
    if n > 7 then redis.call('HSET', key, 'mw_item_results', ARGV[a + 7], 'mw_item_errors', ARGV[a + 8]) end
    if status == 'error' then write_error(key, 'error', text, of.now)
    else redis.call('HSET', key, 'status', 'finished', OUTPUT, text, updated(of.now)) end
    finalize(key, key, has, status, text, of.now, nil, 'flow ' .. of.flow)
  end,

  -- an approval stays open although its record has ended without an answer: place, state that was read, key
  reopen = function(of, a)
    local node, seen, key = unpack(ARGV, a, a + 2)
    if redis.call('HGET', of.nodes, node) ~= seen or not final(redis.call('HGET', key, 'status')) then return end
    redis.call('HSET', key, 'status', 'started', updated(of.now))
    note_audit('flow ' .. of.flow, 'refuse', key, 'finished without an answer', of.now)
  end,

  -- fields of the flow's record, while it has not ended: field, value, …
  note = function(of, a, n)
    if final(redis.call('HGET', of.record, 'status')) then return end
    redis.call('HSET', of.record, updated(of.now, unpack(ARGV, a, a + n - 1)))
  end,

  -- jobs that retention may delete, since the flow has ended: keys
  keep = function(of, a, n)
    for i = a, a + n - 1 do note_end(ARGV[i], of.now) end
  end,
}
