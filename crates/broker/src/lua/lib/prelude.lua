-- Beginning of every script.

-- While a slot of a cluster moves, reading a key that is missing here may fail. This read of a key that never exists
-- lets the call fail before it has written anything.
if TAGGED then redis.call('EXISTS', LEASES .. ':') end

