-- Takes up to `want` jobs off the queues, in their order, each under a lease with a fencing token.
-- What the process' own feed lists hold comes first; what is more than wanted goes back to its queue.
-- KEYS    this process' feed lists; then the queues, in order
-- ARGV    now, want, lease in ms, token, worker, number of feed lists; per feed list: the place of its queue from
--         1; per queue that is an old list: its place, the queue that its jobs go back to
-- Returns number of ids dropped, 1 if ids may be left behind because the script had done enough; per job: id,
--         the queue that it goes back to, attempt, record (values alone where it has the fields of put.lua); per
--         queue that is held back: its place from 1, for how many ms; the time in ms
return done(take(1, 2, clock(ARGV[1])))
