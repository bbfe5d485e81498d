//! Runtimes that execute jobs: scripts, programs and handlers in Rust. Queues and leases are the worker's.

#[cfg(feature = "scripts")]
#[doc(inline)]
pub use meshwork_runtime::{
    ActionDelivery, ActionFault, ActionMessage, App, AppCommand, AppError, AppOptions,
    CALLS_VARIABLE, InterpreterError, RunAnswer, SandboxHost, Task, TaskSchedule, adopt_orphans,
    ask, init, interpreter, python_at, sandbox_host,
};
#[doc(inline)]
pub use meshwork_runtime::{
    ActionIds, AddChildError, Announced, CannotConfine, Confinement, InputError, Inputs, JobError,
    NoLauncher, PONG, Run, Runtime, RuntimeFunction, RuntimeInfo, STOP_GRACE, SandboxPaths,
    SandboxPolicy, ScriptError, SourcePosition, StopReason, StopSignal, builtin, check, endings,
    is_ping, log, runtimes, type_of_file,
};

pub use crate::handler::function::{Call, Handler, JobContext, handler};
pub use crate::handler::group::{BatchOptions, Calls, GroupHandler, group_handler};
