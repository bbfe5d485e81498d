//! The bounds of a job, each with its reason.

use std::time::Duration;

/// Greatest length of a script, in bytes. A script is stored, sent and parsed whole on each run.
pub const MAX_SCRIPT: usize = 1024 * 1024;
/// Greatest length of an input, in bytes. It stays in the store's memory as long as the record.
pub const MAX_INPUT: usize = 16 * 1024 * 1024;
/// Greatest length of a result, in bytes. Larger ones belong into a store of their own.
pub const MAX_OUTPUT: usize = 16 * 1024 * 1024;
/// Bytes that are kept of the last part of stdout and of stderr, each.
pub const MAX_LOG: usize = 64 * 1024;
/// Bytes that are kept of an error's message and of its traceback, each.
pub const MAX_ERROR: usize = 64 * 1024;
/// Greatest total length of names and values in `env_vars`, in bytes. Linux limits a single value to 128 KiB.
pub const MAX_ENV: usize = 64 * 1024;
/// Greatest length of a caller's or context's id, in bytes: a key of 32 bytes in hex, and more. Scripts have both in
/// their environment.
pub const MAX_CALLER: usize = 4096;
/// Greatest timeout, in seconds (7 days). A longer run is a service, not a job.
pub const MAX_TIMEOUT: u64 = 7 * 24 * 3600;
/// Default timeout, in seconds.
pub const DEFAULT_TIMEOUT: u64 = 1800;
/// Greatest number of retries.
pub const MAX_RETRIES: u32 = 100;
/// Number of lost workers after which a job becomes a dead letter, because it may be what kills them.
pub const MAX_LOST: u32 = 5;
/// Number of lost workers after which a job is a suspect: it runs alone in its worker, and a loss counts only if it did.
/// One loss is usually a restart or a crash of the host.
pub const SUSPECT_LOST: u32 = 2;
/// Greatest number of prerequisites. Each is read when the job is enqueued.
pub const MAX_PREREQUISITES: usize = 1000;
/// Greatest number of children of a job, over all its runs. Use a batch, or several parents, for more.
pub const MAX_CHILDREN: u32 = 1000;
/// Greatest depth of a child. A job without a parent has depth 0. The limit ends jobs that submit themselves.
pub const MAX_DEPTH: u32 = 8;
/// Greatest delay and start timeout of a job, and greatest window of a unique name, in milliseconds (10 years).
pub const MAX_DELAY_MS: u64 = 10 * 366 * 86_400_000;
/// Greatest length of a concurrency key and of a unique name, in bytes. They are parts of key names.
pub const MAX_KEY: usize = 256;
/// Greatest number of tags of a job. Lists read them of each job.
pub const MAX_TAGS: usize = 10;
/// Greatest first backoff, in milliseconds (1 hour).
pub const MAX_BACKOFF_MS: u64 = 3_600_000;
/// Greatest delay that a run may request before the next one: 7 days, like the greatest timeout.
pub const MAX_VERDICT_DELAY: Duration = Duration::from_secs(MAX_TIMEOUT);
/// Greatest number of snoozes of a job. A job that waits for something must check less often.
pub const MAX_SNOOZES: u32 = 1000;
/// Greatest time from a job's first snooze to the end of its last one: 7 days.
pub const MAX_SNOOZED: Duration = MAX_VERDICT_DELAY;
/// The most bytes of the results of prerequisites that one run is handed, in all: as much as its own input.
pub const MAX_INPUTS: usize = MAX_INPUT;
/// The most results of a batch's jobs that its callback is handed, as many as a job may have prerequisites.
pub const MAX_BATCH_INPUTS: usize = MAX_PREREQUISITES;
/// The most bytes of the name of a prerequisite's result.
pub const MAX_INPUT_NAME: usize = 64;
