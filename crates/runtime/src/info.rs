//! Description of a runtime on this host: its interpreter and version, and the parts that it lacks.

use meshwork_model::outcome::Failure;

/// Description of a runtime on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeInfo {
    /// Interpreter or compiler: a path, or a name if it is part of the program.
    pub interpreter: String,
    /// Version of the interpreter, if it has one.
    pub version: Option<String>,
    /// Reason why no script of the type runs here.
    pub missing: Option<String>,
    /// Functions that scripts can call, if the runtime lists them.
    pub functions: Vec<RuntimeFunction>,
}

/// A function of a runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuntimeFunction {
    /// Module.
    pub module: &'static str,
    /// Name.
    pub name: &'static str,
    /// Reason why calls are refused; `None` if the function works.
    pub refused: Option<&'static str>,
}

impl RuntimeInfo {
    /// Returns the description of a runtime with this interpreter.
    #[must_use]
    pub fn new(interpreter: impl Into<String>) -> Self {
        Self {
            interpreter: interpreter.into(),
            ..Self::default()
        }
    }

    /// Sets the version.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the reason for which no script runs here.
    #[must_use]
    pub fn missing(mut self, failed: Option<Failure>) -> Self {
        self.missing = failed.map(|failure| failure.message);
        self
    }
}
