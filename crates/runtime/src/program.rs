//! Programs as jobs: those of the type `exec`, and scripts of any type for which the worker has an interpreter. Both
//! run as Python scripts do ([`super::process`]). The result is the program's stdout. Any exit code other than 0 is a
//! failure.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use meshwork_model::job::exec::{Exec, Program, shebang};
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio_util::sync::CancellationToken;

use super::check::{ScriptError, SourcePosition};
use super::process::{self, Executable, Inherited, NamedBy, NotStarted, Process};
use super::requests::Requests;
use super::workdir::{self, Folder};
use super::{Run, Runtime, RuntimeInfo};

/// Placeholder for the script's file in the command of an interpreter.
const SCRIPT: &str = "{script}";

/// Reason why a command line is refused as an interpreter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpreterError {
    /// The command line is empty, or a quote is not closed.
    #[error("the command `{0}` cannot be read: it is empty, or a quote in it does not end")]
    Unreadable(String),
    /// The command line does not contain `{script}`.
    #[error(
        "the command `{0}` has no place for the script's file: write {SCRIPT} there, as in `ruby {SCRIPT}`"
    )]
    NoScript(String),
    /// The program does not exist.
    #[error("there is no program `{0}` here: install it, or give its path")]
    NoProgram(String),
}

/// A program with its arguments. Each is a list of pieces that the path of the script's file separates.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Command {
    program: String,
    args: Vec<Vec<String>>,
}

/// Command of one job.
struct Job {
    command: Command,
    named_by: NamedBy,
    /// Content of the script's file, if there is one.
    script: Option<Vec<u8>>,
}

/// Returns the runtime of the type `exec`.
pub(super) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(Programs {
        interpreter: None,
        file: "script".to_owned(),
    })
}

/// Creates a runtime for scripts of `script_type`. It runs `command`, in which `{script}` stands for the script's file
/// (`script.TYPE`, in a folder of its own). Quotes are read as in a shell, but no shell runs it.
///
/// Input and environment are those of Python scripts, and the result is the stdout.
///
/// # Errors
/// The command cannot be parsed, does not contain `{script}`, or its program is not on the `PATH`.
pub fn interpreter(
    script_type: &ScriptType,
    command: &str,
) -> Result<Arc<dyn Runtime>, InterpreterError> {
    let unreadable = || InterpreterError::Unreadable(command.to_owned());
    let mut words = shlex::split(command).ok_or_else(unreadable)?.into_iter();
    let program = words.next().ok_or_else(unreadable)?;
    let args: Vec<Vec<String>> = words
        .map(|word| word.split(SCRIPT).map(str::to_owned).collect())
        .collect();
    if args.iter().all(|pieces| pieces.len() == 1) {
        return Err(InterpreterError::NoScript(command.to_owned()));
    }
    if find(&program).is_none() {
        return Err(InterpreterError::NoProgram(program));
    }
    Ok(Arc::new(Programs {
        interpreter: Some(Command { program, args }),
        file: format!("script.{script_type}"),
    }))
}

/// Checks that a job of the type `exec` names a program. Scripts are not parsed.
pub(super) fn check(script: Vec<u8>) -> BoxFuture<'static, Result<(), ScriptError>> {
    Box::pin(async move {
        let read = Exec::read(&script).map(drop);
        read.map_err(|error| ScriptError::Syntax {
            script_type: ScriptType::EXEC,
            message: error.to_string(),
            at: SourcePosition::default(),
        })
    })
}

struct Programs {
    /// Command that runs each script; `None` if the job names its program.
    interpreter: Option<Command>,
    /// Name of the script's file.
    file: String,
}

impl Runtime for Programs {
    fn starts_processes(&self) -> bool {
        true
    }

    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        workdir::sweep_once();
        let job = match &self.interpreter {
            Some(command) => Ok(Job {
                command: command.clone(),
                named_by: NamedBy::Worker,
                script: Some(run.job.script.clone()),
            }),
            None => of_exec(&run.job.script),
        };
        let file = self.file.clone();
        process::in_order(run, async move |run, dropped| {
            execute(job?, file, &run, &dropped).await
        })
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        workdir::sweep_once();
        Box::pin(async {
            let interpreter = self.interpreter.as_ref();
            if let Some(missing) = interpreter.filter(|command| find(&command.program).is_none()) {
                return Err(missing.missing(NamedBy::Worker));
            }
            Ok(process::probe().await?)
        })
    }

    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            let info = match &self.interpreter {
                Some(command) => RuntimeInfo::new(&*command.program),
                None => RuntimeInfo::new("the `#!` line of the script, or /bin/sh"),
            };
            info.missing(self.probe().await.err())
        })
    }
}

/// Returns the command of a job of the type `exec`.
fn of_exec(script: &[u8]) -> Result<Job, Failure> {
    let exec = Exec::read(script).map_err(|error| {
        let message = format!("the script names no program: {error}");
        Failure::new(FailureKind::Permanent, message)
    })?;
    let mut args: Vec<_> = exec.args.into_iter().map(|arg| vec![arg]).collect();
    let (program, script) = match exec.program {
        Program::Named(name) => (name, None),
        Program::Script(text) => {
            // An interpreter would read a byte order mark as a part of the first line.
            let text = text.trim_start_matches('\u{feff}').to_owned();
            let (interpreter, argument) = shebang(&text);
            let file = vec![String::new(), String::new()];
            let before = argument.map(|argument| vec![argument.to_owned()]);
            args.splice(0..0, before.into_iter().chain([file]));
            (interpreter.to_owned(), Some(text.into_bytes()))
        }
    };
    let command = Command { program, args };
    Ok(Job {
        command,
        named_by: NamedBy::Job,
        script,
    })
}

/// Runs a program of the worker, whose result is its stdout.
pub(super) async fn execute_at(
    path: PathBuf,
    run: &Run,
    dropped: &CancellationToken,
) -> Result<Report, Failure> {
    let command = Command {
        program: path.to_string_lossy().into_owned(),
        args: Vec::new(),
    };
    let job = Job {
        command,
        named_by: NamedBy::Worker,
        script: None,
    };
    execute(job, String::new(), run, dropped).await
}

async fn execute(
    job: Job,
    file: String,
    run: &Run,
    dropped: &CancellationToken,
) -> Result<Report, Failure> {
    let named_by = job.named_by;
    let Some(program) = find(&job.command.program) else {
        return Err(job.command.missing(named_by));
    };
    let files = match named_by {
        NamedBy::Worker => with_interpreter(&program),
        // A job must not choose the files that it sees.
        NamedBy::Job => Vec::new(),
    };
    let orders = process::orders(run, &files).await?;
    let (script, record, inputs) = (job.script, Arc::clone(&run.job), run.inputs.clone());
    let laid_out = process::blocking(move || {
        let script = script.as_deref().map(|script| (file.as_str(), script));
        let mut folder = Folder::with(script)?;
        folder.lay_out(&inputs)?;
        let path = folder.work().join(&file);
        let input = process::stdin(folder.root(), record.input.as_deref())?;
        Ok((folder, path, input))
    });
    let unready = |error| NotStarted::of_system("lay out the script and its input", &error);
    let (folder, path, input) = laid_out.await.map_err(unready)?;
    let mut requests = Requests::listen(&folder, run, &orders).map_err(unready)?;
    let args = job.command.args(&path);
    let program = Executable {
        path: &program,
        args: &args,
        named_by,
    };
    let inherited = Inherited {
        input: input.into(),
        environment: process::environment(run, &folder)?,
        calls: requests.inherited(),
    };
    let process = Process::start(program, run, &folder, inherited, &orders)?;
    let end = process.wait(run, dropped).await;
    drop(requests);
    let ended = process.end(end).await?;
    let report = process::blocking(move || {
        let report = ended.report(|status, printed| match status.success() {
            true => process::printed(printed, "print less"),
            false => Err(process::failed(status)),
        });
        drop(folder);
        Ok(report)
    });
    report
        .await
        .map_err(|error| process::cannot("remove the script's folder", &error))
}

impl Command {
    /// Returns the failure of a run whose program does not exist here.
    fn missing(&self, named_by: NamedBy) -> Failure {
        let message = format!("there is no program `{}` on this worker", self.program);
        match named_by {
            NamedBy::Job => Failure::new(FailureKind::Permanent, message),
            NamedBy::Worker => NotStarted::Worker(message).into(),
        }
    }

    /// Returns the arguments, with the path of the script's file.
    fn args(&self, script: &Path) -> Vec<OsString> {
        let join = |pieces: &Vec<String>| {
            let mut joined = OsString::new();
            for (at, piece) in pieces.iter().enumerate() {
                if at > 0 {
                    joined.push(script);
                }
                joined.push(piece);
            }
            joined
        };
        self.args.iter().map(join).collect()
    }
}

/// Returns the file of a program, by its path or by its name on the worker's `PATH`.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    which::which_in(program, std::env::var_os("PATH"), "/").ok()
}

/// Returns a program, and the one that its `#!` line names.
fn with_interpreter(program: &Path) -> Vec<PathBuf> {
    let interpreter = process::interpreter_of(program);
    std::iter::once(program.to_owned())
        .chain(interpreter)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(command: &str) -> String {
        let ruby = "ruby".parse().unwrap();
        let made = interpreter(&ruby, command);
        made.map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_command_that_is_no_interpreter_is_refused_by_name() {
        for (command, word) in [
            ("", "empty"),
            ("sh '{script}", "quote"),
            ("sh", "`sh {script}`"),
            ("no-such-program {script}", "`no-such-program`"),
        ] {
            let said = error(command);
            let word = word.replace("`sh {script}`", "`ruby {script}`");
            assert!(said.contains(&word), "{said}");
        }
    }

    #[test]
    fn the_file_of_the_script_takes_its_place() {
        for mark in ["", "\u{feff}"] {
            let exec = r##"{"script": "MARK#!/bin/sh -e\n:", "args": ["{script}"]}"##;
            let exec = Exec::read(exec.replace("MARK", mark).as_bytes()).unwrap();
            let job = of_exec(exec.write().as_bytes()).unwrap_or_else(|_| panic!());
            assert_eq!(job.command.program, "/bin/sh");
            assert_eq!(job.command.args(Path::new("/f")), ["-e", "/f", "{script}"]);
            assert_eq!(job.script.as_deref(), Some(&b"#!/bin/sh -e\n:"[..]));
        }
        let args = vec![vec!["--file=".to_owned(), ":x".to_owned()]];
        let program = "x".to_owned();
        let command = Command { program, args };
        assert_eq!(command.args(Path::new("/f")), ["--file=/f:x"]);
    }
}
