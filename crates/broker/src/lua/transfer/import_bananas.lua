--- @include enqueue/enqueue_fast, protocols/bananas_record
-- Imports jobs of Bananas: each leaves the place where it waits there and is a job here, in one step. Jobs stay that a
-- worker runs, that Bananas' scheduler may be moving, or that have changed. Records in Bananas stay, for its clients.
-- KEYS[1]    the place where the jobs wait
-- KEYS[2]    the list of running jobs there
-- KEYS[3]    the hash of those that workers of this system run
-- KEYS[4]    the set of delayed jobs there
-- KEYS[5..]  per job: its record there, its hash, its queue
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3]    how many entries of a list are searched
-- ARGV[4]    the kind of the place: 'list', 'later' or 'dead'
-- ARGV[5]    1 to import overdue jobs too
-- ARGV[6..]  per job: its time in the place, or when it died in ms ('' for neither); digest of its record; why it is a
--            dead letter; the job as in enqueue.lua
-- Returns per job 'taken', 'twice' if it is here already and was one entry too many, 'gone', 'runs', 'due', 'changed',
--         'odd ERROR', or the answer of enqueue.lua for a job that it refuses
local NEAR = 10000 -- ms before its time in which Bananas' scheduler may move a job: its clock may be ahead
local place, running, held, waiting = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, who, depth, kind, overdue = clock(ARGV[1]), ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1'
local results, a = {}, 6
redis.call('ZCARD', TAKEN) -- ends the call if the key is no such set, with nothing written

-- Returns why a job stays in its place, false if it does not.
local function stays(id, record, time, seen)
  if kind == 'later' then
    if redis.call('ZSCORE', place, id) ~= time then return 'gone' end
    if not overdue and tonumber(time) * 1000 <= now + NEAR then return 'due' end
  else
    if not redis.call('LPOS', place, id, 'RANK', -1, 'MAXLEN', depth) then return 'gone' end
    if redis.call('ZSCORE', waiting, id) then return 'due' end
  end
  if redis.call('HEXISTS', held, id) == 1 or redis.call('LPOS', running, id) then return 'runs' end
  return digest(look_at(record)) ~= seen and 'changed'
end

-- Stores a dead letter.
local function store_dead(id, key, queue, script_type, from, died, why)
  if redis.call('EXISTS', key) == 1 then return 'exists' end
  write_record(key, id, script_type, 'error', now, from)
  redis.call('HSET', key, 'error', why, 'mw_dead', 'failed')
  try('ZADD', DEAD, int(math.min(now, tonumber(died) or now)), id)
  for _, what in ipairs({'created', 'failed', 'dead'}) do count(queue, what) end
  event(id, 'enqueue', who, script_type)
  return 'stored'
end

local function leave_place(id)
  if kind == 'later' then redis.call('ZREM', place, id) else redis.call('LREM', place, -1, id) end
end

for k = 5, #KEYS, 3 do
  local time, seen, why, key = ARGV[a], ARGV[a + 1], ARGV[a + 2], KEYS[k + 1]
  local id, script_type, o, from, behind = read_args(a + 3)
  local answer = stays(id, KEYS[k], time, seen)
  if not answer then
    if kind == 'dead' then answer = store_dead(id, key, KEYS[k + 2], script_type, from, time, why)
    else answer = store(id, key, KEYS[k + 2], script_type, o, from, now, who) end
    local is = answer == 'exists' and read(key, 'mw_bananas', 'status')
    if answer == 'stored' then
      leave_place(id)
      local newest = redis.call('ZRANGE', TAKEN, -1, -1, 'WITHSCORES')[2]
      redis.call('ZADD', TAKEN, int((tonumber(newest or '') or 0) + 1), id)
      event(id, 'import', who, place)
      answer = 'taken'
    elseif is and is.mw_bananas and not final(is.status) then
      leave_place(id)
      answer = 'twice'
    end
  end
  results[#results + 1] = type(answer) == 'table' and 'odd ' .. answer.err or answer
  a = behind
end
push_all(now)
return respond(results)
