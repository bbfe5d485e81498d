--- @include nooble, nooble_end
--- @flags allow-oom
-- Reports that a run failed: the action waits for its next run; or it is answered so, and a dead letter (with an
-- error).
-- KEYS    1: the queue
--         2: what the worker has in hand (of a stream, that)
--         3: the list that the answer goes to
--         4: the tries of the message
--         5: what waits for its next run
--         6: the dead letters
--         7: the record of what was asked for, where the action is a callback
-- ARGV     1: now
--          2: group ('' for a list)
--          3: worker
--          4: id in the stream
--          5: how often it was given
--          6: the message
--          7: the answer ('' for none)
--          8: how long that waits in ms
--          9: the most runs
--         10: the pause after the first in ms
--         11: the longest pause
--         12: the error ('' if it is to be no dead letter)
--         13: a word that no other call has
-- Returns 'again', 'failed', 'unanswered' or 'stale' as finish does; and the runs that failed so far
if not holds() then return {'stale', 0} end
local now = clock(ARGV[1])
local runs = redis.call('HINCRBY', KEYS[4], 'runs', 1)
redis.call('PEXPIRE', KEYS[4], TRIES_FOR)
if runs < tonumber(ARGV[9]) then
  local pause = math.min(tonumber(ARGV[10]) * 2 ^ (runs - 1), tonumber(ARGV[11]))
  redis.call('ZADD', KEYS[5], int(now + pause), ARGV[13] .. ' ' .. ARGV[6])
  let_go(KEYS[2], ARGV[2], known_by())
  return {'again', runs}
end
if ARGV[12] ~= '' then
  redis.call('XADD', KEYS[6], 'MAXLEN', '~', MOST_DEAD, '*', 'data', ARGV[6], 'error', ARGV[12], 'runs', runs,
    'at', int(now), 'queue', KEYS[1])
end
local told = answer(KEYS[3], ARGV[7], ARGV[8])
redis.call('DEL', KEYS[4])
if KEYS[7] then redis.call('DEL', KEYS[7]) end
let_go(KEYS[2], ARGV[2], known_by())
return {told and 'failed' or 'unanswered', runs}
