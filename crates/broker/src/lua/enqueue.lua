--- @include enqueue_fast
-- Stores jobs and pushes their ids. A job whose id exists is left as it is; one that waits for others, for
-- its time or for the turn of its key is stored without being pushed.
-- KEYS    per job: its hash, its queue
-- ARGV    now, who; then per job: id, type, number of wishes, per wish its name and value (worker: the worker
--         it is for; wait: for how many ms it waits for others at most; after: a prerequisite, may be said again;
--         on_failure: what its failure means; presence: key of the worker it is for, and fallback: queue if that is
--         away; due: when it is to run, or delay in ms; key: whose turns it takes; unique: name of which one is
--         accepted, policy: keep, refuse or replace, window in ms if it is for a while; batch: the one it belongs
--         to, member and token: the job of it that asks, if it is one); caller, worker, context, script, timeout in
--         s, retries, concurrent, whether a reply is wanted; number of strings that follow, field, value, …
-- Returns per job 'stored', 'exists', 'full', 'draining', 'large ' and its bytes, 'unknown ' and the
--         prerequisite that is not there, 'keep ' or 'refuse ' and the job that has its unique name, 'batch '
--         and why that takes none: missing, sealed, ended or full
local now, who = clock(ARGV[1]), ARGV[2]
local at, told, a = stamp(now), {}, 3

for k = 1, #KEYS, 2 do
  local id, script_type, o, from, behind = read_args(a)
  local answer = store(id, KEYS[k], KEYS[k + 1], script_type, o, from, now, at, who)
  if type(answer) == 'table' then -- a queue that is no list: what is stored already stands
    push_all()
    return respond(answer)
  end
  told[#told + 1] = answer
  a = behind
end
push_all()
return respond(told)
