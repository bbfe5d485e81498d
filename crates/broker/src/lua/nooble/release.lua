-- Hands a message back to its queue, at no cost.
-- KEYS    the queue, what the worker has in hand
-- ARGV    now, group ('' for a list), worker, id in the stream, how often it was given, the message
-- Returns 1, or 0 if the message is not this worker's any more
if not holds() then return 0 end
put(KEYS[1], ARGV[6])
let_go(KEYS[2], ARGV[2], known_by())
return 1
