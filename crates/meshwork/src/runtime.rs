//! Runtimes that execute jobs: scripts, programs and handlers in Rust. Queues and leases are the worker's.

#[doc(inline)]
pub use meshwork_runtime::{
    ActionDelivery, ActionFault, ActionIds, ActionMessage, AddChildError, Announced,
    CALLS_VARIABLE, CannotConfine, Confinement, InputError, Inputs, InterpreterError, JobError,
    NoLauncher, PONG, Run, RunAnswer, Runtime, RuntimeFunction, RuntimeInfo, STOP_GRACE,
    SandboxHost, SandboxPaths, SandboxPolicy, ScriptError, SourcePosition, StopReason, StopSignal,
    adopt_orphans, ask, builtin, check, endings, init, interpreter, is_ping, log, python_at,
    runtimes, sandbox_host, type_of_file,
};

pub use crate::handler::function::{Call, Handler, JobContext, handler};
pub use crate::handler::group::{BatchOptions, Calls, GroupHandler, group_handler};
