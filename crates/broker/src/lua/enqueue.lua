--- @include enqueue/enqueue_fast
--- @rights late
-- Stores jobs and adds their ids to their queues. A job whose id exists stays as it is. A job that waits for
-- prerequisites, for its time or for a slot of its key is stored without being queued.
-- KEYS[1..]  per job: its hash, its queue
-- ARGV[1]    the time in ms, '0' for the server's clock
-- ARGV[2]    the caller, for the event
-- ARGV[3..]  per job: id, type, number of options, per option name and value; the values of write_record.lua:
--            caller, worker, context, script, timeout in s, retries, concurrent, 1 if a reply is wanted; the number of
--            further strings, field, value, …
-- Options:   worker: the worker that it is for; presence: key of that worker's registration, and fallback: queue if
--            it is away or has no free slot; after: a prerequisite, may be repeated; on_failure: the effect of its failure;
--            wait: longest wait for prerequisites in ms; due: when it is to run in ms since 1970, or delay: in ms;
--            start: longest time in ms until a worker begins it, from its due time if it has one;
--            key: concurrency key; unique: unique name, policy: keep, refuse or replace, window: its time in ms;
--            spread: its spread queue, with generation: that of the layout which selected this part, partition: its key
--            there, and if_present: 1 if the part takes it only if it has unfinished jobs of the key;
--            batch: its batch, with member and token: the running job of that batch which enqueues it
-- Returns per job 'stored', 'exists', 'full', 'draining', 'large BYTES', 'unknown ID' (a missing prerequisite),
--         'keep ID' or 'refuse ID' (the job with its unique name), 'batch WHY' (missing, sealed, ended or full),
--         'stale GENERATION' or 'elsewhere' (see lib/enqueue/spread.lua).
--         An error if a key is of another kind; the jobs before it are stored
local now, who = clock(ARGV[1]), ARGV[2]
local answers, a = {}, 3

for k = 1, #KEYS, 2 do
  local id, script_type, o, from, behind = read_args(a)
  local answer = store(id, KEYS[k], KEYS[k + 1], script_type, o, from, now, who)
  if type(answer) == 'table' then -- a queue that is no list: the jobs before it stay
    push_all(now)
    return respond(answer)
  end
  answers[#answers + 1] = answer
  a = behind
end
push_all(now)
return respond(answers)
