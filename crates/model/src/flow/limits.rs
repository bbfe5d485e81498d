//! The bounds of a flow, each with its reason.

/// The most jobs of a flow, its compensations and the jobs of nested flows included.
pub const MAX_JOBS: usize = 10_000;
/// The most jobs that one job may need: a script looks at each of them when the job is stored.
pub const MAX_NEEDS: usize = 1000;
/// The most items of one `foreach`: each item is a job of its own.
pub const MAX_ITEMS: usize = 10_000;
/// The deepest level of nested flows; the flow of the file itself is at level 1.
pub const MAX_DEPTH: usize = 8;
/// The most bytes of a flow's file.
pub const MAX_FILE: usize = 1024 * 1024;
/// The most aliases of a YAML file, counted after aliases within anchors have been replaced.
pub const MAX_ALIASES: usize = 100;
/// The most bytes of the name of a flow or of a job.
pub const MAX_NAME: usize = 64;
/// The most bytes of one expression or template, which is parsed at each evaluation.
pub const MAX_EXPRESSION: usize = 64 * 1024;
/// The longest wait, approval or flow, in milliseconds (10 years): as long as a job may be delayed.
pub const MAX_WAIT_MS: u64 = crate::job::limits::MAX_DELAY_MS;
/// The time after which an unanswered approval is refused, in milliseconds (7 days).
pub const DEFAULT_APPROVAL_MS: u64 = 7 * 24 * 3_600_000;
/// The most approvers of one job.
pub const MAX_APPROVERS: usize = 100;
/// The most bytes of all results of a flow together.
pub const MAX_RESULTS: usize = 16 * 1024 * 1024;
