-- Ends an action that went well: its answer and its acknowledgement are one step. Of a stream, the first run that ends
-- counts, also when another worker has taken the message over meanwhile: it ends once.
-- KEYS    the queue, what the worker has in hand, the list that the answer goes to; and the record of what was asked for,
--         where the action is a callback
-- ARGV    now, group ('' for a list), worker, id in the stream, how often it was given, the message (of a list), the
--         answer ('' for none), how long that waits in ms
-- Returns 'finished', 'unanswered' if what is to take the answer is no list, or 'stale' if the message is over already,
--         or of a list and not this worker's any more
if not let_go() then return 'stale' end
local told = answer(KEYS[3], ARGV[7], ARGV[8])
if KEYS[4] then redis.call('DEL', KEYS[4]) end
return told and 'finished' or 'unanswered'
