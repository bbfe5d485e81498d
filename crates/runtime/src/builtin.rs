//! Table of the built-in runtimes: each is one file of this folder and one entry here. It is empty without the feature `scripts`.

use meshwork_macros::boxed;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "scripts")]
use meshwork_model::name::ScriptType;

use super::Runtime;
use super::check::{Checker, ScriptError};
#[cfg(feature = "sal")]
use super::sal;
#[cfg(feature = "scripts")]
use super::{program, python, rhai, v};

/// The built-in runtimes.
pub(super) const RUNTIMES: &[BuiltIn] = &[
    #[cfg(feature = "scripts")]
    BuiltIn {
        name: ScriptType::OSIS,
        endings: &["rhai"],
        create: rhai::runtime,
        check: rhai::check,
    },
    #[cfg(feature = "scripts")]
    BuiltIn {
        name: ScriptType::PYTHON,
        endings: &["py"],
        create: python::runtime,
        check: python::check,
    },
    #[cfg(feature = "scripts")]
    BuiltIn {
        name: ScriptType::EXEC,
        endings: &["sh"],
        create: program::runtime,
        check: program::check,
    },
    #[cfg(feature = "sal")]
    BuiltIn {
        name: ScriptType::SAL,
        endings: &["sal"],
        create: sal::runtime,
        check: sal::check,
    },
    #[cfg(feature = "scripts")]
    BuiltIn {
        name: ScriptType::V,
        endings: &["v"],
        create: v::runtime,
        check: v::check,
    },
];

pub(super) struct BuiltIn {
    /// Script type, which names its queues.
    pub(super) name: &'static str,
    /// Endings of the names of its files.
    pub(super) endings: &'static [&'static str],
    pub(super) create: fn() -> Arc<dyn Runtime>,
    pub(super) check: Checker,
}

/// Returns the built-in runtime for a script type.
#[must_use]
pub fn builtin(script_type: &str) -> Option<Arc<dyn Runtime>> {
    RUNTIMES
        .iter()
        .find(|runtime| runtime.name == script_type)
        .map(|runtime| (runtime.create)())
}

/// Returns the script types of all built-in runtimes.
pub fn runtimes() -> impl Iterator<Item = &'static str> {
    RUNTIMES.iter().map(|runtime| runtime.name)
}

/// Returns the endings of the names of files with scripts, with the script type of each.
pub fn endings() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of =
        |runtime: &'static BuiltIn| runtime.endings.iter().map(|ending| (*ending, runtime.name));
    RUNTIMES.iter().flat_map(of)
}

/// Returns the script type of a file by the ending of its name, in any case.
#[must_use]
pub fn type_of_file(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?;
    let (_, name) = endings().find(|(known, _)| known.eq_ignore_ascii_case(ending))?;
    Some(name)
}

/// Checks the syntax of a script with the parser of its runtime.
///
/// # Errors
/// The syntax is wrong; the error has the position. Or the parser could not run.
#[boxed]
pub async fn check(script_type: &str, script: &[u8]) -> Result<(), ScriptError> {
    let runtime = RUNTIMES.iter().find(|runtime| runtime.name == script_type);
    let Some(runtime) = runtime else {
        return Err(ScriptError::Unknown {
            script_type: script_type.to_owned(),
            known: runtimes().collect::<Vec<_>>().join(", "),
        });
    };
    (runtime.check)(script.to_vec()).await
}
