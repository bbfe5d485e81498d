//! The worker engine, for protocols of one's own: a [`Protocol`] claims, reports and stores jobs; the engine does all else.
//! The guide is [adding-a-protocol.md](https://github.com/meshwork/meshwork/blob/main/docs/adding-a-protocol.md).

#[doc(inline)]
pub use meshwork_worker::{
    CallError, Completed, Completion, Config, Exchanged, Failed, FailedRun, FetchRequest, Fetched,
    InFlight, Intake, InvalidPrefetch, InvalidSetting, Line, LogDirError, Logged, MAX_CONCURRENCY,
    Monitor, Outages, Prefetch, Prepared, Protocol, Queues, Renewed, StartError, Step, TIMEOUT,
    Unhealthy, Waited, WorkerHandle, WorkerRequest, start,
};
