//! Errors as exceptions of the Python package.

use std::error::Error as _;

use meshwork::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Module of the exceptions.
const ERRORS: &str = "meshwork._errors";

/// Returns the exception of a failed call.
pub(crate) fn failed(py: Python<'_>, error: &Error) -> PyErr {
    let kind = match error {
        Error::JobWaitTimeout { .. } => "ResultTimeout",
        _ => "MeshworkError",
    };
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    exception(py, kind, message)
}

/// Returns the exception of a job that was refused before a call.
pub(crate) fn refused(message: String) -> PyErr {
    Python::attach(|py| exception(py, "MeshworkError", message))
}

fn exception(py: Python<'_>, kind: &str, message: String) -> PyErr {
    let made = py
        .import(ERRORS)
        .and_then(|module| module.getattr(kind)?.call1((message.as_str(),)));
    match made {
        Ok(made) => PyErr::from_value(made),
        Err(_) => PyRuntimeError::new_err(message),
    }
}
