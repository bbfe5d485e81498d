//! The bounds of a job, each with its reason.

use std::time::Duration;

/// The largest script, in bytes. A script is stored, sent and parsed whole on each run.
pub const MAX_SCRIPT: usize = 1024 * 1024;
/// The largest input, in bytes. It lives in Redis' memory until the job's record goes.
pub const MAX_INPUT: usize = 16 * 1024 * 1024;
/// The largest result, in bytes; what is larger belongs into a store of its own.
pub const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// How much of the end of stdout and of stderr is kept with the record, in bytes each.
pub const MAX_LOG: usize = 64 * 1024;
/// How much of an error's message, and of its traceback, is kept with the record, in bytes each.
pub const MAX_ERROR: usize = 64 * 1024;
/// The largest sum of all names and values in `env_vars`, in bytes: Linux hands a program no single
/// value over 128 KiB.
pub const MAX_ENV: usize = 64 * 1024;
/// The most bytes of a caller's or a context's id: a key of 32 bytes in hex, with plenty around it. A script
/// finds both in its environment.
pub const MAX_CALLER: usize = 4096;
/// The longest timeout, in seconds (7 days): what runs longer is a service, not a job.
pub const MAX_TIMEOUT: u64 = 7 * 24 * 3600;
/// The timeout of a job that names none, in seconds.
pub const DEFAULT_TIMEOUT: u64 = 1800;
/// The most retries of one job.
pub const MAX_RETRIES: u32 = 100;
/// The loss of its worker with which a job counts as what kills them, and becomes a dead letter.
pub const MAX_LOST: u32 = 5;
/// The most prerequisites of one job: each is looked at when it is enqueued.
pub const MAX_PREREQUISITES: usize = 1000;
/// The most children of one job, over all its runs: what is more belongs into a batch, or under several parents.
pub const MAX_CHILDREN: u32 = 1000;
/// The deepest level of a child: a job that nobody else's run has submitted is at level 0. A job that submits
/// itself ends here.
pub const MAX_DEPTH: u32 = 8;
/// The longest delay of a job, and the longest window of a unique name, in milliseconds (10 years).
pub const MAX_DELAY_MS: u64 = 10 * 366 * 86_400_000;
/// The most bytes of a key, and of a unique name: they are parts of names in Redis.
pub const MAX_KEY: usize = 256;
/// The longest first pause before a retry, in milliseconds (one hour).
pub const MAX_BACKOFF_MS: u64 = 3_600_000;
/// The longest pause that a run may ask for before the next one: 7 days, as the longest run.
pub const MAX_VERDICT_DELAY: Duration = Duration::from_secs(MAX_TIMEOUT);
/// The most snoozes of one job: one that waits for something looks for it less often than that.
pub const MAX_SNOOZES: u32 = 1000;
/// The longest time from the first snooze of a job to the end of the last: 7 days.
pub const MAX_SNOOZED: Duration = MAX_VERDICT_DELAY;
