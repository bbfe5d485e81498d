-- Keeps what a worker has in hand: its place among those who take from a list, or what a stream gave it.
-- KEYS    the queue, who takes from the list, what the worker has in hand
-- ARGV    now, group ('' for a list), worker, how long it counts as there in ms; then per message of a stream: id, how
--         often it was given
-- Returns the ids that are no longer this worker's
local KEPT_FOR = 30 * 86400000 -- ms after the last worker was killed: what is in hand is the next one's until then
local gone = {}
if ARGV[2] == '' then
  redis.call('ZADD', KEYS[2], whole(clock(ARGV[1]) + tonumber(ARGV[4])), ARGV[3])
  redis.call('PEXPIRE', KEYS[2], KEPT_FOR)
  redis.call('PEXPIRE', KEYS[3], KEPT_FOR)
end
for i = 5, #ARGV, 2 do
  local id = ARGV[i]
  local given = redis.pcall('XPENDING', KEYS[1], ARGV[2], id, id, 1, ARGV[3])
  if not given.err and given[1] and whole(given[1][4]) == ARGV[i + 1] then
    redis.call('XCLAIM', KEYS[1], ARGV[2], ARGV[3], 0, id, 'JUSTID')
  else
    gone[#gone + 1] = id
  end
end
return gone
