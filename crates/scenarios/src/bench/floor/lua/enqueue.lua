-- Stores jobs and queues them.
-- KEYS    queue, bell
-- ARGV    now, list for the answers ('' for none), whether to ring; per job: id, payload
-- Returns how many
local queue, at, answers = KEYS[1], ARGV[1], ARGV[2]
for a = 4, #ARGV, 2 do
  local id = ARGV[a]
  redis.call('HSET', 'floor:job:' .. id, 'body', ARGV[a + 1], 'state', 'waiting', 'origin', queue,
    'stored', at, 'runs', 0, 'answers', answers)
  redis.call('LPUSH', queue, id)
end
if ARGV[3] == '1' then
  -- One ring is enough, however many there were.
  redis.call('LPUSH', KEYS[2], '1')
  redis.call('LTRIM', KEYS[2], 0, 0)
end
return (#ARGV - 3) / 2
