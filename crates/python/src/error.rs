//! Errors as exceptions of the Python package.

use std::fmt;

use meshwork::Error;
use meshwork::context::ContextError;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Module of the exceptions.
const ERRORS: &str = "meshwork._errors";

/// Reason why a call has failed.
#[derive(Debug)]
pub(crate) enum Fault {
    Call(Box<Error>),
    Context(ContextError),
    /// A parameter is wrong.
    Refused(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Call(Box::new(error))
    }
}

impl From<ContextError> for Fault {
    fn from(error: ContextError) -> Self {
        Self::Context(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error: &dyn std::error::Error = match self {
            Self::Call(error) => error,
            Self::Context(error) => error,
            Self::Refused(why) => return f.write_str(why),
        };
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = error.source();
        }
        f.write_str(&message)
    }
}

impl Fault {
    /// Returns the exception.
    pub(crate) fn exception(&self, py: Python<'_>) -> PyErr {
        let kind = match self {
            Self::Call(error) => match **error {
                Error::JobWaitTimeout { .. } => "ResultTimeout",
                Error::JobExists { .. } => "JobExists",
                _ => "MeshworkError",
            },
            _ => "MeshworkError",
        };
        exception(py, kind, self.to_string())
    }
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
