--- @include complete/ending, queue/remove_from_lists, protocols/bananas_record
-- Exports jobs that were imported from Bananas: each is deleted here and waits there again, in one step. Running jobs
-- stay, and those that have changed since the caller read them.
-- KEYS[1..]  per job: its hash, the queue that it may wait in, its record in Bananas, where it waits there from now on
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3..]  per job: id; as the caller read them: status, runs begun, due time here ('' for none); the kind of the
--            place there: 'list', 'later' or 'dead'; its time there; its record as a template (`drafted`)
-- Returns per job 'given', 'gone', 'runs', 'changed', 'awaited' if jobs here wait for it, or 'odd' if a key there is of
--         another kind
local now, who, answers, a = clock(ARGV[1]), ARGV[2], {}, 3

local function stays(id, has, status, begun, due)
  if not has.mw_bananas then return 'gone' end
  if has.status == 'started' then return 'runs' end
  local has_begun, is_due = tonumber(has.mw_attempt or '') or 0, redis.call('ZSCORE', DELAYED, id) or ''
  if has.status ~= status or has_begun ~= begun or tonumber(is_due) ~= tonumber(due) then return 'changed' end
  return redis.call('EXISTS', DEPENDENTS .. id) == 1 and 'awaited'
end

-- Returns true if the keys there are of the right kinds.
local function fits(record, place, kind)
  local is = redis.call('TYPE', record).ok
  return (is == 'string' or is == 'none')
    and type(try(kind == 'later' and 'ZCARD' or 'LLEN', place)) == 'number'
end

for k = 1, #KEYS, 4 do
  local id, kind, time = ARGV[a], ARGV[a + 4], ARGV[a + 5]
  local text, behind = drafted(a + 6, now)
  local has = record(KEYS[k], 'mw_bananas', 'mw_attempt', 'mw_lock')
  local answer = stays(id, has, ARGV[a + 1], tonumber(ARGV[a + 2]), ARGV[a + 3])
  if not answer and not fits(KEYS[k + 2], KEYS[k + 3], kind) then answer = 'odd' end
  if not answer then
    local queue = has.mw_queue or KEYS[k + 1]
    drop_slot(queue, id, more(KEYS[k], has))
    unclaim(id, has)
    unqueue(queue, id)
    unlock(has.mw_lock, id)
    drop_job(id)
    redis.call('SET', KEYS[k + 2], text)
    if kind == 'dead' then redis.call('PEXPIRE', KEYS[k + 2], DEAD_FOR) end
    if kind == 'later' then redis.call('ZADD', KEYS[k + 3], time, id) else redis.call('LPUSH', KEYS[k + 3], id) end
    event(id, 'export', who, KEYS[k + 3])
    answer = 'given'
  end
  answers[#answers + 1] = answer
  a = behind
end
return respond(answers)
