--- @include ending, remove_from_lists, bananas_record
-- Gives jobs that were taken over from Bananas back: each is forgotten here and waits there again, in one step. What a
-- worker runs stays, and what is not as it was read.
-- KEYS    per job: its hash, the queue it may wait in, its record there, where it waits there from now on
-- ARGV    now, who; then per job: id, its status, runs begun, and when it is due here, as they were read ('' for none);
--         'list', 'later' or 'dead' for what the place is, its time there, its record with gaps for times
-- Returns per job 'given', 'gone', 'runs', 'changed', 'awaited' if jobs here wait for it, or 'odd' if a key there is of
--         another kind
local now, who, told, a = clock(ARGV[1]), ARGV[2], {}, 3

local function stays(id, has, status, begun, due)
  if not has.mw_bananas then return 'gone' end
  if has.status == 'started' then return 'runs' end
  local has_begun, is_due = tonumber(has.mw_attempt or '') or 0, redis.call('ZSCORE', DELAYED, id) or ''
  if has.status ~= status or has_begun ~= begun or tonumber(is_due) ~= tonumber(due) then return 'changed' end
  return redis.call('EXISTS', NEXT .. id) == 1 and 'awaited'
end

-- Whether the keys there take it.
local function fits(record, place, kind)
  local is = redis.call('TYPE', record).ok
  return (is == 'string' or is == 'none')
    and type(redis.pcall(kind == 'later' and 'ZCARD' or 'LLEN', place)) == 'number'
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
    event(id, 'give_back', who, KEYS[k + 3])
    answer = 'given'
  end
  told[#told + 1] = answer
  a = behind
end
return respond(told)
