//! Scripts of the type `sal`: Rhai with the functions of the crate `meshwork-sal`, in a process of its own, which is this
//! program started again ([`child`]). So a script reaches no further than its sandbox, and may change its current folder.

pub(super) mod child;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::{Failure, Report};

use super::check::ScriptError;
use super::process::{self, NotStarted};
use super::sandbox::{COMMAND, is_on};
use super::scripted::{self, Interpreter};
use super::workdir::{self, Folder};
use super::{NoLauncher, Run, Runtime, RuntimeFunction, RuntimeInfo, rhai};

/// Name of the script's file.
const SCRIPT: &str = "script.sal";

/// Returns the runtime for SAL.
pub(super) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(Sal)
}

/// Checks the syntax of a script.
pub(super) fn check(script: Vec<u8>) -> BoxFuture<'static, Result<(), ScriptError>> {
    rhai::check_as(ScriptType::SAL, script)
}

struct Sal;

impl Runtime for Sal {
    fn starts_processes(&self) -> bool {
        true
    }

    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        workdir::sweep_once();
        process::in_order(run, async move |run, dropped| {
            let path = program()?;
            let interpreter = Interpreter {
                path: &path,
                files: std::slice::from_ref(&path),
                script: SCRIPT,
                arguments,
            };
            scripted::execute(interpreter, &run, &dropped).await
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        workdir::sweep_once();
        Box::pin(async {
            program()?;
            Ok(process::probe().await?)
        })
    }

    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            let mut info = RuntimeInfo::new("Rhai with SAL").version(rhai::VERSION);
            info.functions = functions();
            info.missing(self.probe().await.err())
        })
    }
}

/// Returns each name of SAL once. A name with several signatures works if one of them does.
fn functions() -> Vec<RuntimeFunction> {
    let mut all: Vec<RuntimeFunction> = Vec::new();
    for function in meshwork_sal::functions() {
        let same =
            |one: &&mut RuntimeFunction| (one.module, one.name) == (function.module, function.name);
        match all.iter_mut().find(same) {
            Some(known) => known.refused = known.refused.and(function.refused),
            None => all.push(RuntimeFunction {
                module: function.module,
                name: function.name,
                refused: function.refused,
            }),
        }
    }
    all
}

/// Returns the file of this program, which a script's process runs.
fn program() -> Result<PathBuf, Failure> {
    if !is_on() {
        return Err(NotStarted::Worker(NoLauncher.to_string()).into());
    }
    let path = std::env::current_exe();
    let path = path.map_err(|error| NotStarted::of_system("find this program", &error))?;
    match path.is_file() {
        true => Ok(path),
        // The kernel adds a word to the path of a removed file.
        false => Err(NotStarted::Worker(format!(
            "the file of this program was replaced or removed ({}): restart the worker",
            path.display()
        ))
        .into()),
    }
}

/// Returns the arguments of the script's process.
fn arguments(folder: &Folder) -> io::Result<Vec<OsString>> {
    let script = folder.work().join(SCRIPT);
    Ok(vec![
        COMMAND.into(),
        child::STAGE.into(),
        script.into(),
        folder.outcome().into(),
        folder.progress().into(),
    ])
}
