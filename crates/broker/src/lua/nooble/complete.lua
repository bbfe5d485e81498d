--- @include protocols/nooble_end
--- @flags allow-oom
-- Completes an action: its reply and its acknowledgement, in one step. Of a stream, the first run that ends counts,
-- even if another worker has reclaimed the message meanwhile.
-- KEYS[1]  the stream, or the worker's processing list
-- KEYS[2]  the list of the reply
-- KEYS[3]  the record of the pending callback, where the action is a callback
-- ARGV[1]  the group ('' for a list)
-- ARGV[2]  the message's id in the stream, or the message of a list
-- ARGV[3]  the reply ('' for none)
-- ARGV[4]  for how long the reply is kept in ms ('0' for as long as its list)
-- Returns 'finished'    the action is completed
--         'unanswered'  it is completed, but the key of the reply is no list
--         'stale'       the message has ended before, or is in no processing list of this worker
if not end_lease(KEYS[1], ARGV[1], ARGV[2]) then return 'stale' end
local replied = answer(KEYS[2], ARGV[3], ARGV[4])
if KEYS[3] then redis.call('DEL', KEYS[3]) end
return replied and 'finished' or 'unanswered'
