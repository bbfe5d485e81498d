//! Names of a record's fields. Some are Hero's, with `script_type` as Hero's later releases write it. Meshwork's own
//! begin with `mw_`, so that they never clash with a later field of Hero.

/// Field names of the hash `hero:job:{id}`.
pub mod field {
    /// Unique job identifier (UUID v4).
    pub const ID: &str = "id";
    /// Id of the caller.
    pub const CALLER_ID: &str = "caller_id";
    /// Target worker.
    pub const WORKER_ID: &str = "worker_id";
    /// Target worker, under its name in Hero since August 2025.
    pub const ACTOR_ID: &str = "actor_id";
    /// Execution context.
    pub const CONTEXT_ID: &str = "context_id";
    /// Text of the script.
    pub const SCRIPT: &str = "script";
    /// Type of the script.
    pub const SCRIPT_TYPE: &str = "script_type";
    /// Seconds.
    pub const TIMEOUT: &str = "timeout";
    /// Number of retries.
    pub const RETRIES: &str = "retries";
    /// `true` or `false`.
    pub const CONCURRENT: &str = "concurrent";
    /// A log file on the worker's host.
    pub const LOG_PATH: &str = "log_path";
    /// ISO 8601.
    pub const CREATED_AT: &str = "created_at";
    /// ISO 8601.
    pub const UPDATED_AT: &str = "updated_at";
    /// Own: [`CREATED_AT`] in milliseconds since 1970, in records of contexts, which have whole seconds there.
    pub const CREATED_MS: &str = "mw_created_ms";
    /// Own: [`UPDATED_AT`] in milliseconds since 1970, in records of contexts.
    pub const UPDATED_MS: &str = "mw_updated_ms";
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
    /// Reason of a failure.
    pub const ERROR: &str = "error";

    /// Own: input of the script, as bytes.
    pub const INPUT: &str = "mw_input";
    /// Own: requested group.
    pub const GROUP: &str = "mw_group";
    /// Own: requested instance.
    pub const INSTANCE: &str = "mw_instance";
    /// Own: `0` if no client waits on the reply list. Absent in jobs of other clients, which get a reply.
    pub const REPLY: &str = "mw_reply";
    /// Own: fencing token of the current claim.
    pub const TOKEN: &str = "mw_token";
    /// Own: worker of the last claim.
    pub const WORKER: &str = "mw_worker";
    /// Own: queue of the last claim.
    pub const QUEUE: &str = "mw_queue";
    /// Own: start of the run, in milliseconds since 1970.
    pub const STARTED: &str = "mw_started";
    /// Own: concurrency key, for fair queues and limits.
    pub const KEY: &str = "mw_key";
    /// Own: tags, with blanks between them.
    pub const TAGS: &str = "mw_tags";
    /// Own: sequence number among jobs with a key.
    pub const SEQ: &str = "mw_seq";
    /// Own: queue in which the job occupies a slot.
    pub const SLOT: &str = "mw_slot";
    /// Own: the time for which the unique name is taken, a blank, the name. The time is `done`, `started` or a number
    /// of milliseconds.
    pub const UNIQUE: &str = "mw_unique";
    /// Own: due time of a delayed job, in milliseconds since 1970.
    pub const RUN_AT: &str = "mw_run_at";
    /// Own: batch of the job.
    pub const BATCH: &str = "mw_batch";
    /// Own: kind of a callback (`done`, `success` or `failure`), a blank, the batch.
    pub const CALLBACK: &str = "mw_callback";
    /// Own: present if the job has a key, a slot, a unique name, a due time or a batch. Scripts look for these only
    /// then.
    pub const WITH: &str = "mw_with";
    /// Own: number of attempts. Runs that were released, or lost with their worker, do not count.
    pub const ATTEMPT: &str = "mw_attempt";
    /// Own: the last attempts that failed or were lost, as [`FailedAttempt`](crate::job::FailedAttempt) in a line each.
    pub const FAILED_ATTEMPTS: &str = "mw_failed_attempts";
    /// Own: number of runs whose worker died.
    pub const LOST: &str = "mw_lost";
    /// Own: number of snoozes.
    pub const SNOOZES: &str = "mw_snoozes";
    /// Own: last part of the last run's stdout.
    pub const STDOUT: &str = "mw_stdout";
    /// Own: last part of the last run's stderr.
    pub const STDERR: &str = "mw_stderr";
    /// Own: `high` or `low`; absent for `normal`.
    pub const PRIORITY: &str = "mw_priority";
    /// Own: `continue` if the job runs after the failure of a prerequisite. Absent: it fails.
    pub const ON_FAILURE: &str = "mw_on_failure";
    /// Own: prerequisites that have not ended, each in quotes; absent if there are none.
    pub const WAITING: &str = "mw_waiting";
    /// Own: time until which the job waits for prerequisites, in milliseconds since 1970; absent without a limit.
    pub const EXPIRES: &str = "mw_expires";
    /// Own: time by which a worker has to begin the job, in milliseconds since 1970, a blank, the start timeout in
    /// milliseconds. Absent from the first start on.
    pub const START_BY: &str = "mw_start_by";
    /// Own: first backoff, in milliseconds.
    pub const BACKOFF: &str = "mw_backoff";
    /// Own: legacy list that also contains the id. The worker that removes the id from that list may run the job.
    pub const LOCK: &str = "mw_lock";
    /// Own: reply list of a job of a foreign client. `1`: `hero:reply:{id}`, for a job from a legacy list. `0` or
    /// absent: `hero:q:reply:{id}`. `both`: not known.
    pub const LEGACY: &str = "mw_legacy";
    /// Own: marks a job that a worker without leases took or started. It has the time at which that was first seen
    /// (milliseconds since 1970), `started` or `away`, and `updated_at` of that time. The value `new` marks a job
    /// whose type migrates: a client that sets no mark may also push it to a legacy list.
    pub const SEEN: &str = "mw_seen";
    /// Own: registration key of the target worker, a blank, and the queue to use if that worker is not alive.
    pub const FALLBACK: &str = "mw_fallback";
    /// Own: JSON object of the names of prerequisites' results, each with the id of its job.
    pub const INPUT_NAMES: &str = "mw_input_names";
    /// Own: present in an imported job that is in no queue yet.
    pub const IMPORT: &str = "mw_import";
    /// Own: reason of a cancellation.
    pub const STOP: &str = "mw_stop";
    /// Own: reason of a dead letter.
    pub const DEAD: &str = "mw_dead";
    /// Own: progress as a whole percentage, as `45%`, with an optional text after a blank.
    pub const PROGRESS: &str = "mw_progress";
    /// Own: trace of the job and span of its submission (W3C `traceparent`).
    pub const TRACEPARENT: &str = "mw_traceparent";
    /// Own: vendors' part of the trace (W3C `tracestate`).
    pub const TRACESTATE: &str = "mw_tracestate";
    /// Own: requested sandbox, as [`SandboxSettings`](crate::sandbox::SandboxSettings) writes it.
    pub const SANDBOX: &str = "mw_sandbox";
    /// Own: node of the message that brought the job, if that is another one: 64 hexadecimal digits.
    pub const FROM_NODE: &str = "mw_from_node";
    /// Own: sandbox and resources of the last run, as [`RunUsage`](crate::sandbox::RunUsage) writes them.
    pub const USAGE: &str = "mw_usage";
    /// Own: digest of the request that created the job, so that a repeated request is recognized.
    pub const REQUEST: &str = "mw_request";
    /// Own: number of the flow that the job is part of.
    pub const FLOW: &str = "mw_flow";
    /// Own: origin of a job that was imported from Bananas: keys of its record, result and channel, the key that
    /// listed it, and its score if that is a set.
    pub const BANANAS: &str = "mw_bananas";
    /// Own: original record of a job of Bananas.
    pub const RECORD: &str = "mw_record";
    /// Own: spans of that record which the end of the job changes.
    pub const PLACES: &str = "mw_places";
    /// Own: position of an error in the script.
    pub const TRACEBACK: &str = "mw_traceback";
    /// Own: job whose run submitted this one.
    pub const PARENT: &str = "mw_parent";
    /// Own: number of ancestors; absent without a parent.
    pub const DEPTH: &str = "mw_depth";
    /// Own: number of children.
    pub const CHILDREN: &str = "mw_children";
    /// Own: greatest number of a child's call; refused calls have numbers too.
    pub const CALLS: &str = "mw_calls";
    /// Own: digest of a child; the name ends with the child's number.
    pub const CHILD: &str = "mw_child_";
}
