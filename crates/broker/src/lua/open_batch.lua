--- @include enqueue_fast
-- Opens a batch: jobs may be added to it, and its callbacks wait for how those end.
-- KEYS    the batch's hash; per callback: its hash, its queue
-- ARGV    now, who, id, name, how long it stays open with nothing added in ms; per callback: its kind (done,
--         success, failure), and what enqueue takes of a job
-- Returns 'opened', 'exists', or the kind of a callback that is not stored and what enqueue says of it; nothing
--         was written then
local now, who, batch = clock(ARGV[1]), ARGV[2], ARGV[3]
local at, a, stored, fields = stamp(now), 6, {}, {}
if redis.call('EXISTS', KEYS[1]) == 1 then return 'exists' end
redis.call('ZCARD', BATCHES_OPEN) -- should it be no such set, the call ends here
for k = 2, #KEYS, 2 do
  local kind = ARGV[a]
  local id, script_type, o, from, behind = read_args(a + 1)
  o = o or {}
  o.callback = kind .. ' ' .. batch
  local answer = store(id, KEYS[k], KEYS[k + 1], script_type, o, from, now, at, who)
  if answer ~= 'stored' then
    for _, other in ipairs(stored) do slow_path().drop_job(other) end
    return type(answer) == 'table' and answer or kind .. ' ' .. answer
  end
  a, stored[#stored + 1] = behind, id
  fields[#fields + 1] = 'on_' .. kind
  fields[#fields + 1] = id
end
local open_until = int(now + tonumber(ARGV[5]))
redis.call('HSET', KEYS[1], 'name', ARGV[4], 'created', int(now), 'total', 0, 'succeeded', 0, 'failed', 0,
  'open_for', ARGV[5], 'open_until', open_until, unpack(fields))
redis.call('ZADD', BATCHES_OPEN, int(now + math.min(LOOK_EVERY, tonumber(ARGV[5]))), batch)
event('batch ' .. batch, 'open', who, ARGV[4])
push_all()
return respond('opened')
