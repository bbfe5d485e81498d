//! The names of a record's fields: Hero's, `script_type` as Hero's later releases write it, and ours,
//! which begin with `mw_` so that no field of a later Hero can mean something else.

/// Field names of the hash `hero:job:{id}`.
pub mod field {
    /// Unique job identifier (UUID v4).
    pub const ID: &str = "id";
    /// Who asked for the job.
    pub const CALLER_ID: &str = "caller_id";
    /// Target worker.
    pub const WORKER_ID: &str = "worker_id";
    /// Target worker, as Hero calls it since August 2025.
    pub const ACTOR_ID: &str = "actor_id";
    /// Execution context.
    pub const CONTEXT_ID: &str = "context_id";
    /// What to execute.
    pub const SCRIPT: &str = "script";
    /// What executes it.
    pub const SCRIPT_TYPE: &str = "script_type";
    /// Seconds.
    pub const TIMEOUT: &str = "timeout";
    /// Number of runs after the first.
    pub const RETRIES: &str = "retries";
    /// `true` or `false`.
    pub const CONCURRENT: &str = "concurrent";
    /// A log file on the worker's host.
    pub const LOG_PATH: &str = "log_path";
    /// ISO 8601.
    pub const CREATED_AT: &str = "created_at";
    /// ISO 8601.
    pub const UPDATED_AT: &str = "updated_at";
    /// dispatched, started, finished or error.
    pub const STATUS: &str = "status";
    /// JSON object.
    pub const ENV_VARS: &str = "env_vars";
    /// JSON array of job ids that must finish before this job; other clients write ids in other ways too.
    pub const PREREQUISITES: &str = "prerequisites";
    /// JSON array of job ids that wait for this job.
    pub const DEPENDENTS: &str = "dependents";
    /// Another name of [`PREREQUISITES`].
    pub const DEPENDENCIES: &str = "dependencies";
    /// The result.
    pub const OUTPUT: &str = "output";
    /// Why there is none.
    pub const ERROR: &str = "error";

    /// Ours: bytes handed to the script.
    pub const INPUT: &str = "mw_input";
    /// Ours: the group asked for.
    pub const GROUP: &str = "mw_group";
    /// Ours: the instance asked for.
    pub const INSTANCE: &str = "mw_instance";
    /// Ours: `0` if nobody waits on the reply list. Absent in what other clients submit: they get a reply.
    pub const REPLY: &str = "mw_reply";
    /// Ours: the fencing token of the claim in force.
    pub const TOKEN: &str = "mw_token";
    /// Ours: the worker that claimed the job last.
    pub const WORKER: &str = "mw_worker";
    /// Ours: the queue it was claimed from.
    pub const QUEUE: &str = "mw_queue";
    /// Ours: when its run began, in milliseconds since 1970.
    pub const STARTED: &str = "mw_started";
    /// Ours: the key whose turns it takes in a fair queue, and whose limits it counts for.
    pub const KEY: &str = "mw_key";
    /// Ours: its place among jobs with a key.
    pub const SEQ: &str = "mw_seq";
    /// Ours: the queue of whose slots it holds one.
    pub const SLOT: &str = "mw_slot";
    /// Ours: `done` or `started`, until when no other job of the unique name is accepted, or for how many
    /// milliseconds; a blank, the name.
    pub const UNIQUE: &str = "mw_unique";
    /// Ours: when it is to run, in milliseconds since 1970.
    pub const RUN_AT: &str = "mw_run_at";
    /// Ours: the batch that it belongs to.
    pub const BATCH: &str = "mw_batch";
    /// Ours: what it waits for as a callback (`done`, `success` or `failure`), a blank, the batch.
    pub const CALLBACK: &str = "mw_callback";
    /// Ours: that it has a key, a slot, a unique name, a time or a batch; scripts look for them only then.
    pub const WITH: &str = "mw_with";
    /// Ours: runs begun, without those that cost nothing (handed back, or lost with their worker).
    pub const ATTEMPT: &str = "mw_attempt";
    /// Ours: how often its worker went away.
    pub const LOST: &str = "mw_lost";
    /// Ours: how often its runs asked to be run later.
    pub const SNOOZES: &str = "mw_snoozes";
    /// Ours: the end of the last run's stdout.
    pub const STDOUT: &str = "mw_stdout";
    /// Ours: the end of the last run's stderr.
    pub const STDERR: &str = "mw_stderr";
    /// Ours: `high` or `low`; absent for the rest.
    pub const PRIORITY: &str = "mw_priority";
    /// Ours: what a prerequisite's failure means: `continue`, or absent where it is this job's failure too.
    pub const ON_FAILURE: &str = "mw_on_failure";
    /// Ours: prerequisites that have not ended, each in quotes; absent when there is none.
    pub const WAITING: &str = "mw_waiting";
    /// Ours: when the time is over that a job may wait for others, in milliseconds since 1970; absent without a bound.
    pub const EXPIRES: &str = "mw_expires";
    /// Ours: the first pause before a retry, in milliseconds.
    pub const BACKOFF: &str = "mw_backoff";
    /// Ours: the old list on which the id stands as well; who takes it off there has the job.
    pub const LOCK: &str = "mw_lock";
    /// Ours: where the client of a job that is not ours waits. `1`, on `hero:reply:{id}`, since the job came from an old
    /// list; `0`, on `hero:q:reply:{id}`, as where it is missing; `both`, if nobody knows.
    pub const LEGACY: &str = "mw_legacy";
    /// Ours: that a worker without leases has started it, or has taken it, and when that was first seen:
    /// milliseconds since 1970, `started` or `away`, and `updated_at` as it was then. Or `new`: its type migrates, and a
    /// client without our mark may be about to push it to an old list too.
    pub const SEEN: &str = "mw_seen";
    /// Ours: the presence key of the worker it is for, a blank, and the queue to take if that is away.
    pub const FALLBACK: &str = "mw_fallback";
    /// Ours: why it is to be stopped.
    pub const STOP: &str = "mw_stop";
    /// Ours: why it is a dead letter.
    pub const DEAD: &str = "mw_dead";
    /// Ours: how far it is: a whole percentage, as `45%`, and perhaps a blank and a few words.
    pub const PROGRESS: &str = "mw_progress";
    /// Ours: the trace that it belongs to, and the span that asked for it (W3C `traceparent`).
    pub const TRACEPARENT: &str = "mw_traceparent";
    /// Ours: what tracing systems say beside it (W3C `tracestate`).
    pub const TRACESTATE: &str = "mw_tracestate";
    /// Ours: that it was a job of Bananas: the names there of its record, its result and its channel, the key that it
    /// was taken from, and its time where that is a set.
    pub const BANANAS: &str = "mw_bananas";
    /// Ours: the record that it had there, as it was.
    pub const RECORD: &str = "mw_record";
    /// Ours: where in that record the fields stand that its end changes.
    pub const PLACES: &str = "mw_places";
    /// Ours: where in the script the error arose.
    pub const TRACEBACK: &str = "mw_traceback";
    /// Ours: the job whose run has submitted it.
    pub const PARENT: &str = "mw_parent";
    /// Ours: how many jobs stand above it; absent where it has no parent.
    pub const DEPTH: &str = "mw_depth";
    /// Ours: how many children its runs have submitted.
    pub const CHILDREN: &str = "mw_children";
    /// Ours: the highest number among them: calls that were refused have numbers too.
    pub const CALLS: &str = "mw_calls";
    /// Ours: with the number of a child behind it, the digest of what that child was asked to be.
    pub const CHILD: &str = "mw_child_";

    /// What the record of every job says that our clients submit, in the order in which scripts tell values
    /// without names. The last eight are the client's to say beside id and type.
    pub const STORED: [&str; 13] = [
        STATUS,
        CREATED_AT,
        UPDATED_AT,
        ID,
        SCRIPT_TYPE,
        CALLER_ID,
        WORKER_ID,
        CONTEXT_ID,
        SCRIPT,
        TIMEOUT,
        RETRIES,
        CONCURRENT,
        REPLY,
    ];
}
