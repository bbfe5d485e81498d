//! Variables of the processes of a run, and of programs that the worker starts for it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;

use super::super::Run;
use super::super::requests::CALLS_VARIABLE;
use super::super::sandbox::Environment;
use super::super::workdir::Folder;
use super::start::NotStarted;

/// Variable with the path of the file with the results of other jobs.
pub(in super::super) const INPUTS_VARIABLE: &str = "MESHWORK_INPUTS";

type Variables = BTreeMap<OsString, OsString>;

/// Returns the variables of a script.
pub(in super::super) fn environment(run: &Run, folder: &Folder) -> Result<Environment, NotStarted> {
    let job = &run.job;
    let mut all = basic(folder);
    let mut set = |name: &str, value: OsString| drop(all.insert(name.into(), value));
    for (name, value) in &job.env_vars {
        set(name, value.into());
    }
    set("CALLER_ID", (&job.caller_id).into());
    set("CONTEXT_ID", (&job.context_id).into());
    set("JOB_ID", (&job.id).into());
    set("MESHWORK_JOB", (&job.id).into());
    set(CALLS_VARIABLE, folder.calls().into());
    if let Some(inputs) = folder.inputs() {
        set(INPUTS_VARIABLE, inputs.into());
    }
    if let Some(trace) = &run.trace {
        set("TRACEPARENT", trace.parent().into());
        if let Some(state) = trace.state() {
            set("TRACESTATE", state.into());
        }
    }
    stored(all)
}

/// Returns the variables of a program that the worker starts before a script: none of the job, which could change what
/// the program leaves in a cache for other jobs.
pub(in super::super) fn own_environment(
    folder: &Folder,
    more: impl IntoIterator<Item = (&'static str, OsString)>,
) -> Result<Environment, NotStarted> {
    let mut all = basic(folder);
    all.extend(more.into_iter().map(|(name, value)| (name.into(), value)));
    stored(all)
}

/// Returns the variables of every process. They inherit only `PATH` from the worker.
fn basic(folder: &Folder) -> Variables {
    let path = env::var_os("PATH").map(|path| ("PATH", path));
    let own = [
        ("HOME", folder.work().into()),
        ("TMPDIR", folder.work().into()),
        ("LANG", "C.UTF-8".into()),
    ];
    let all = own.into_iter().chain(path);
    all.map(|(name, value)| (name.into(), value)).collect()
}

fn stored(variables: Variables) -> Result<Environment, NotStarted> {
    Environment::of(variables).map_err(|error| NotStarted::of_variables(&error))
}
