//! `meshwork runtime`.

use meshwork::runtime::{self, RuntimeInfo, SandboxHost, sandbox_host};
use meshwork_model::sandbox::Profile;
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::job_view::line;
use crate::out::{Column, Row};

/// Shown instead of profiles for a runtime without processes.
const IN_WORKER: &str = "in the worker: no files, no network";

/// Show the script types that this host runs
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RuntimeCommand {
    List(List),
    Show(Show),
}

/// List the script types with their interpreters, and what is missing here
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

/// Show one script type: interpreter, version, sandbox, and its functions if it lists them
#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// Script type
    #[arg(value_name = "TYPE")]
    script_type: String,
}

/// A runtime as it is printed.
#[derive(Debug, Serialize)]
struct RuntimeView {
    #[serde(rename = "type")]
    name: &'static str,
    /// Endings of the names of its files.
    files: Vec<String>,
    interpreter: String,
    version: Option<String>,
    /// True if each script has a process of its own, in the sandbox.
    process: bool,
    /// Profiles of the sandbox that this host can enforce; empty without a process.
    sandbox: Vec<String>,
    missing: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    functions: Vec<FunctionView>,
}

#[derive(Debug, Serialize)]
struct FunctionView {
    module: &'static str,
    name: &'static str,
    refused: Option<&'static str>,
}

impl RuntimeCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let all = runtime::runtimes();
        let names: Vec<_> = match &self {
            Self::List(_) => all.collect(),
            Self::Show(show) => all.filter(|name| *name == show.script_type).collect(),
        };
        let host = sandbox_host().await.ok();
        let mut views = Vec::new();
        for name in names {
            views.extend(view(name, host).await);
        }
        match self {
            Self::List(_) => context.out.rows(views)?,
            Self::Show(show) => {
                let Some(view) = views.pop() else {
                    return Err(unknown(&show.script_type));
                };
                view.show(context)?;
            }
        }
        Ok(Exit::DONE)
    }
}

fn unknown(script_type: &str) -> CommandError {
    let known: Vec<_> = runtime::runtimes().collect();
    CommandError::usage(format_args!(
        "no runtime `{script_type}` is built in: give one of {}, or start a worker with --runtime {script_type}='COMMAND {{script}}'",
        known.join(", ")
    ))
}

/// Returns the description of a built-in runtime on this host.
async fn view(name: &'static str, host: Option<&SandboxHost>) -> Option<RuntimeView> {
    let found = runtime::builtin(name)?;
    let info: RuntimeInfo = found.describe().await;
    let process = found.starts_processes();
    let profiles = [Profile::Open, Profile::Standard, Profile::Strict].into_iter();
    let works = |profile: &Profile| match host {
        Some(host) => process && host.allows(*profile).is_ok(),
        None => process && *profile == Profile::Open,
    };
    let files = runtime::endings().filter(|(_, of)| *of == name);
    let function = |function: meshwork::runtime::RuntimeFunction| FunctionView {
        module: function.module,
        name: function.name,
        refused: function.refused,
    };
    Some(RuntimeView {
        name,
        files: files.map(|(ending, _)| format!(".{ending}")).collect(),
        interpreter: info.interpreter,
        version: info.version,
        process,
        sandbox: profiles
            .filter(works)
            .map(|profile| profile.to_string())
            .collect(),
        missing: info.missing,
        functions: info.functions.into_iter().map(function).collect(),
    })
}

impl RuntimeView {
    fn sandbox(&self) -> String {
        match self.process {
            true => self.sandbox.join(", "),
            false => IN_WORKER.to_owned(),
        }
    }

    /// Prints a line per field, and one per function.
    fn show(&self, context: &mut App) -> Result<(), CommandError> {
        let out = &mut context.out;
        if out.is_json() {
            return Ok(out.json(self)?);
        }
        let (files, sandbox) = (self.files.join(", "), self.sandbox());
        for (name, value) in [
            ("type", Some(self.name)),
            ("files", Some(files.as_str())),
            ("interpreter", Some(self.interpreter.as_str())),
            ("version", self.version.as_deref()),
            ("sandbox", Some(sandbox.as_str())),
            ("missing", self.missing.as_deref()),
        ] {
            if let Some(value) = value {
                line(name, value, out)?;
            }
        }
        for function in &self.functions {
            let state = match function.refused {
                None => "done".to_owned(),
                Some(reason) => format!("refused: {reason}"),
            };
            let name = format!("{}.{}", function.module, function.name);
            out.line(format_args!("{name:48} {state}"))?;
        }
        Ok(())
    }
}

impl Row for RuntimeView {
    fn columns() -> Vec<Column> {
        let names = [
            "type",
            "files",
            "version",
            "sandbox",
            "interpreter",
            "missing",
        ];
        Column::named(names, &[])
    }

    fn optional() -> &'static [&'static str] {
        &["sandbox", "files"]
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.to_owned(),
            self.files.join(", "),
            self.version.clone().unwrap_or_default(),
            self.sandbox(),
            self.interpreter.clone(),
            self.missing.clone().unwrap_or_default(),
        ]
    }
}
