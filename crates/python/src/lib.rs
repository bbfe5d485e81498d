//! The native module of the Python package `meshwork`: a client of the store. Jobs are JSON in both directions; the types for
//! people are written in Python (`packages/python`).

mod batch;
mod client;
mod drain;
mod error;
mod runtime;
mod store;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// The module `meshwork._native`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(forked, module)?)?;
    module.add_function(wrap_pyfunction!(batch::open_batch, module)?)?;
    module.add_function(wrap_pyfunction!(batch::seal_batch, module)?)?;
    module.add_function(wrap_pyfunction!(batch::cancel_batch, module)?)?;
    module.add_function(wrap_pyfunction!(batch::batch, module)?)?;
    module.add_function(wrap_pyfunction!(drain::drain, module)?)?;
    module.add_class::<client::Client>()
}

/// To be called in a process that was forked: it has the generator of ids of its parent, which would make the same ids.
#[pyfunction]
fn forked() -> PyResult<()> {
    let seeded = rand::rng().reseed();
    seeded
        .map_err(|error| PyRuntimeError::new_err(format!("the host gives no randomness: {error}")))
}
