//! Sandboxes of scripts: profiles, limits, and the rule that makes both of them for a run. [`effective()`] is that rule:
//! the origin of a job decides first, and its queue, its parent and the job itself can only narrow.

mod effective;
mod limits;
mod profile;
mod settings;
mod size;
mod usage;

pub use effective::{Effective, JobOrigin, Party, TooLax, WorkerSandbox, effective, of_child};
pub use limits::{
    Limit, Limits, MAX_CPU_MS, MAX_FILES, MAX_PROCESSES, MAX_SIZE, MIN_CPU_MS, MIN_FILES,
    MIN_MEMORY,
};
pub use profile::{Profile, UnknownProfile};
pub use settings::{InvalidSandbox, SandboxSettings};
pub use size::{InvalidSize, format_size, parse_size};
pub use usage::{InvalidUsage, RunUsage, Usage};
