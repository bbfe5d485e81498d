//! The runtime of the calls of one client. A client belongs to the process that made it: after a fork, its threads are gone,
//! and the Python side makes another one.

use std::sync::Arc;

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;
use tokio::runtime::{Builder, Runtime};

/// Threads of a runtime: its calls wait for the network.
const THREADS: usize = 1;

/// Creates a runtime.
pub(crate) fn new() -> PyResult<Arc<Runtime>> {
    let mut builder = Builder::new_multi_thread();
    let built = builder.worker_threads(THREADS).enable_all().build();
    built.map(Arc::new).map_err(|error| {
        PyRuntimeError::new_err(format!("cannot start the threads of the client: {error}"))
    })
}
