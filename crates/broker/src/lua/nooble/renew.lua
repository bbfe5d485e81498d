--- @include base
--- @flags allow-oom
-- Keeps what a worker has in hand: its place among those who take from the queue, and what a stream gave it.
-- KEYS    the queue, who takes from the queue, what the worker has in hand of a list (of a stream, that)
-- ARGV    now, group ('' for a list), worker, how long it counts as there in ms, how long what it has in hand waits for the
--         next worker in ms; then per message of a stream: id, how often it was given
-- Returns the ids that are no longer this worker's
local gone = {}
redis.call('ZADD', KEYS[2], int(clock(ARGV[1]) + tonumber(ARGV[4])), ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
if ARGV[2] == '' then redis.call('PEXPIRE', KEYS[3], ARGV[5]) end -- a stream is shared: it gets no end
for i = 6, #ARGV, 2 do
  local id = ARGV[i]
  local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], id, id, 1, ARGV[3])
  if not given.err and given[1] and int(given[1][4]) == ARGV[i + 1] then
    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, id, 'JUSTID')
  else
    gone[#gone + 1] = id
  end
end
return gone
