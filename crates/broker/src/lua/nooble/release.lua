--- @include nooble, nooble_end
--- @flags allow-oom
-- Hands a message back to its queue, at no cost.
-- KEYS    1: the queue
--         2: what the worker has in hand
-- ARGV    1: now
--         2: group ('' for a list)
--         3: worker
--         4: id in the stream
--         5: how often it was given
--         6: the message
-- Returns 1, or 0 if the message is not this worker's any more
if not holds() then return 0 end
put(KEYS[1], ARGV[6])
let_go(KEYS[2], ARGV[2], known_by())
return 1
