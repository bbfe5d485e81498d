--- @include protocols/nooble, protocols/nooble_end
--- @flags allow-oom
-- Records that a run of an action failed: the action is retried after a pause; or its caller gets the reply, and the
-- action becomes a dead letter (with an error).
-- KEYS[1]   the queue
-- KEYS[2]   the worker's processing list (of a stream, the stream)
-- KEYS[3]   the list of the reply
-- KEYS[4]   the counters of the message
-- KEYS[5]   the set of delayed actions
-- KEYS[6]   the dead letters
-- KEYS[7]   the record of the pending callback, where the action is a callback
-- ARGV[1]   the time in ms, '0' for the server's clock
-- ARGV[2]   the group ('' for a list)
-- ARGV[3]   the worker
-- ARGV[4]   the message's id in the stream
-- ARGV[5]   how often it was delivered
-- ARGV[6]   the message
-- ARGV[7]   the reply ('' for none)
-- ARGV[8]   for how long the reply is kept in ms ('0' for as long as its list)
-- ARGV[9]   most runs
-- ARGV[10]  the pause after the first run in ms
-- ARGV[11]  the longest pause in ms
-- ARGV[12]  the error ('' for no dead letter)
-- ARGV[13]  a word that no other call has
-- Returns [1]  'again' (a retry), 'failed', 'unanswered' (the key of the reply is no list), or 'stale' (the message is
--              not this worker's)
--         [2]  the number of failed runs
if not holds() then return {'stale', 0} end
local now = clock(ARGV[1])
local runs = redis.call('HINCRBY', KEYS[4], 'runs', 1)
redis.call('PEXPIRE', KEYS[4], TRIES_FOR)
if runs < tonumber(ARGV[9]) then
  local pause = math.min(tonumber(ARGV[10]) * 2 ^ (runs - 1), tonumber(ARGV[11]))
  redis.call('ZADD', KEYS[5], int(now + pause), ARGV[13] .. ' ' .. ARGV[6])
  end_lease(KEYS[2], ARGV[2], known_by())
  return {'again', runs}
end
if ARGV[12] ~= '' then
  redis.call('XADD', KEYS[6], 'MAXLEN', '~', MOST_DEAD, '*', 'data', ARGV[6], 'error', ARGV[12], 'runs', runs,
    'at', int(now), 'queue', KEYS[1])
end
local replied = answer(KEYS[3], ARGV[7], ARGV[8])
redis.call('DEL', KEYS[4])
if KEYS[7] then redis.call('DEL', KEYS[7]) end
end_lease(KEYS[2], ARGV[2], known_by())
return {replied and 'failed' or 'unanswered', runs}
