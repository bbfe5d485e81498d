--- @include nooble_end
--- @flags allow-oom
-- Ends an action that went well: its answer and its acknowledgement are one step. Of a stream, the first run that ends
-- counts, also when another worker has taken the message over meanwhile: it ends once.
-- KEYS    1: the stream, or what the worker has in hand of a list
--         2: the list that the answer goes to
--         3: the record of what was asked for, where the action is a callback
-- ARGV    1: group ('' for a list)
--         2: the id in the stream or the message of the list
--         3: the answer ('' for none)
--         4: how long that waits in ms
-- Returns 'finished', 'unanswered' if what is to take the answer is no list, or 'stale' if the message is over already,
--         or of a list and not this worker's any more
if not let_go(KEYS[1], ARGV[1], ARGV[2]) then return 'stale' end
local told = answer(KEYS[2], ARGV[3], ARGV[4])
if KEYS[3] then redis.call('DEL', KEYS[3]) end
return told and 'finished' or 'unanswered'
