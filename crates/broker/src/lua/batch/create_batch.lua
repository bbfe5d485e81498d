--- @include enqueue/enqueue_fast
-- Creates a batch to which jobs can be added, and stores the callbacks that wait for its end.
-- KEYS[1]    the batch's hash
-- KEYS[2..]  per callback: its hash, its queue
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3]    the batch's id
-- ARGV[4]    its name
-- ARGV[5]    for how long it stays open in ms after the last job was added
-- ARGV[6]    the digest of the request that it is made from; '' for none
-- ARGV[7..]  per callback: its kind (done, success or failure), the job as in enqueue.lua
-- Returns 'opened'  the batch is created
--         'exists'  the id is in use
--         or 'KIND ANSWER': the answer of enqueue.lua for the callback that it refused; nothing was written
local now, who, batch = clock(ARGV[1]), ARGV[2], ARGV[3]
local a, stored, fields = 7, {}, {}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'exists' end
redis.call('ZCARD', BATCHES_OPEN) -- ends the call if the key is no such set
for k = 2, #KEYS, 2 do
  local kind = ARGV[a]
  local id, script_type, o, from, behind = read_args(a + 1)
  o = o or {}
  o.callback = kind .. ' ' .. batch
  local answer = store(id, KEYS[k], KEYS[k + 1], script_type, o, from, now, who)
  if answer ~= 'stored' then
    for _, other in ipairs(stored) do slow_path().drop_job(other) end
    return type(answer) == 'table' and answer or kind .. ' ' .. answer
  end
  a, stored[#stored + 1] = behind, id
  fields[#fields + 1] = 'on_' .. kind
  fields[#fields + 1] = id
end
if ARGV[6] ~= '' then
  fields[#fields + 1] = 'request'
  fields[#fields + 1] = ARGV[6]
end
local open_until = int(now + tonumber(ARGV[5]))
redis.call('HSET', KEYS[1], 'name', ARGV[4], 'created', int(now), 'total', 0, 'succeeded', 0, 'failed', 0,
  'open_for', ARGV[5], 'open_until', open_until, unpack(fields))
redis.call('ZADD', BATCHES_OPEN, int(now + math.min(LOOK_EVERY, tonumber(ARGV[5]))), batch)
event('batch ' .. batch, 'open', who, ARGV[4])
push_all(now)
return respond('opened')
