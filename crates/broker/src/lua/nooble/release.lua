--- @include protocols/nooble, protocols/nooble_end
--- @flags allow-oom
-- Releases a message: puts it into its queue without counting the run, if it is this worker's.
-- KEYS[1]  the queue
-- KEYS[2]  the worker's processing list (of a stream, the stream)
-- ARGV[1]  the time in ms; not used
-- ARGV[2]  the group ('' for a list)
-- ARGV[3]  the worker
-- ARGV[4]  the message's id in the stream
-- ARGV[5]  how often it was delivered
-- ARGV[6]  the message
-- Returns 1, or 0 if the message is not this worker's
if not holds() then return 0 end
put(KEYS[1], ARGV[6])
end_lease(KEYS[2], ARGV[2], known_by())
return 1
