-- Takes up to `want` jobs off the queues, in their order, each under a lease with a fencing token.
-- What the process' own feed lists hold comes first; what is more than wanted goes back to its queue.
-- KEYS    per queue, in order: the queue, this process' feed list for it, the queue that its jobs go back
--         to (another one if it is an old list)
-- ARGV    now, want, lease in ms, token, worker
-- Returns number of ids dropped, 1 if ids may be left behind because the script had done enough; per job: id,
--         the queue that it goes back to, attempt, record; per queue that is held back: its place from 1,
--         for how many ms; the time in ms
return done(take(1, 2, clock(ARGV[1])))
