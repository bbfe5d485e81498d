-- What every script begins with.

-- While a slot of a cluster moves, a key that is not here may be there, and asking for it fails: so better now,
-- with a key that never is, than half way.
if TAGGED then redis.call('EXISTS', LEASES .. ':') end

