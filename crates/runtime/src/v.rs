//! Scripts of the type `v`: V compiles them to programs, which are kept by the digest of source and compiler. The compiler and
//! the program run in the sandbox of the job. The result is the program's stdout.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use tokio_util::sync::CancellationToken;

use super::cache::{Cache, Entry, digest};
use super::check::{ScriptError, SourcePosition};
use super::process::{self, Executable, Inherited, NamedBy, NotStarted, Process};
use super::workdir::{self, Folder};
use super::{Run, Runtime, RuntimeInfo, program};

/// Variable that names the compiler.
const VARIABLE: &str = "MESHWORK_V";
/// Compiler if that variable is not set.
const DEFAULT: &str = "v";
/// Longest wait for the compiler's version.
const PATIENCE: Duration = Duration::from_secs(20);
/// Libraries and modules of the compiler, beside its program.
const LIBRARIES: [&str; 4] = ["cmd", "thirdparty", "v.mod", "vlib"];
/// Name of the script's file.
const SCRIPT: &str = "script.v";
/// Name of the program in the cache.
const PROGRAM: &str = "program";
/// Bytes at the end of the compiler's output in an error.
const LAST_WORDS: usize = 1_000;

/// Compiled programs: 1 GiB, and no more entries than a listing of the folder takes.
const PROGRAMS: Cache = Cache {
    name: "v",
    bytes: 1 << 30,
    entries: 10_000,
};

/// A compiler.
#[derive(Debug, Clone)]
struct Compiler {
    path: PathBuf,
    version: String,
}

impl Compiler {
    /// Returns the files that it reads. Others beside it are not its own.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone()];
        if let Some(folder) = self.path.parent() {
            files.extend(LIBRARIES.map(|name| folder.join(name)));
        }
        files
    }
}

/// Returns the runtime for V.
pub(super) fn runtime() -> Arc<dyn Runtime> {
    Arc::new(V)
}

/// Refuses the check: the compiler reads files that a script names while it compiles.
pub(super) fn check(_script: Vec<u8>) -> BoxFuture<'static, Result<(), ScriptError>> {
    let why = "V checks a script only when it compiles it, at the start of the job";
    Box::pin(std::future::ready(Err(ScriptError::Unchecked(
        why.to_owned(),
    ))))
}

struct V;

impl Runtime for V {
    fn starts_processes(&self) -> bool {
        true
    }

    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        workdir::sweep_once();
        let execute = move |run: Run, dropped: CancellationToken| async move {
            let entry = Box::pin(compiled(&run, &dropped)).await?;
            let path = entry.path.join(PROGRAM);
            let report = program::execute_at(path, &run, &dropped).await;
            // Until now the program stays in the cache.
            drop(entry);
            report
        };
        process::in_order(run, execute)
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        workdir::sweep_once();
        Box::pin(async {
            compiler().await?;
            Ok(process::probe().await?)
        })
    }

    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            match compiler().await {
                Ok(found) => RuntimeInfo::new(found.path.display().to_string())
                    .version(found.version)
                    .missing(self.probe().await.err()),
                Err(failure) => RuntimeInfo::new(DEFAULT).missing(Some(failure)),
            }
        })
    }
}

/// Returns the compiler with its version.
async fn compiler() -> Result<Compiler, Failure> {
    let name = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| DEFAULT.into());
    let fault = |kind: FailureKind, why: String| {
        let name = name.to_string_lossy();
        let remedy = format!("install V, or set {VARIABLE} to its path");
        let message = format!("no V compiler: `{name}` {why}; {remedy}");
        Failure::new(kind, message).of_host()
    };
    let missing = |why: String| fault(FailureKind::Permanent, why);
    // A busy host cannot start it now, or hear its answer in time.
    let late = |why: String| fault(FailureKind::NotStarted, why);
    let found = which::which_in(&name, std::env::var_os("PATH"), "/");
    let path = found.map_err(|error| missing(format!("cannot be found ({error})")))?;
    let path = path.canonicalize().unwrap_or(path);
    let mut command = tokio::process::Command::new(&path);
    command
        .arg("version")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = match tokio::time::timeout(PATIENCE, process::output(command)).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => return Err(late(format!("cannot be started ({error})"))),
        Err(_) => return Err(late("does not answer".to_owned())),
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version = version.strip_prefix("V ").map(str::to_owned);
    let version = version.ok_or_else(|| missing("does not answer as V does".to_owned()))?;
    Ok(Compiler { path, version })
}

/// Returns the compiled program of the job's script: from the cache, or compiled now.
async fn compiled(run: &Run, dropped: &CancellationToken) -> Result<Entry, Failure> {
    let compiler = compiler().await?;
    let path = compiler.path.to_string_lossy();
    let parts = [
        run.tenant.as_bytes(),
        run.confinement.profile.as_str().as_bytes(),
        &*run.job.script,
        compiler.version.as_bytes(),
        path.as_bytes(),
    ];
    let name = digest(&parts);
    let entry = PROGRAMS.entry_for(name, run, dropped).await?;
    if entry.is_complete() {
        return Ok(entry);
    }
    compile(&compiler, &entry, run, dropped).await?;
    let complete = process::blocking(move || entry.complete(PROGRAMS)).await;
    complete.map_err(|error| process::cannot("use the cache", &error))
}

/// Compiles the script in its sandbox, and copies the program into the cache.
async fn compile(
    compiler: &Compiler,
    entry: &Entry,
    run: &Run,
    dropped: &CancellationToken,
) -> Result<(), Failure> {
    let building = run.beside();
    let orders = process::orders(&building, &compiler.files()).await?;
    let job = Arc::clone(&run.job);
    let laid_out = process::blocking(move || {
        let folder = Folder::with(Some((SCRIPT, &job.script)))?;
        let input = process::stdin(folder.root(), None)?;
        Ok((folder, input))
    });
    let unready = |error| NotStarted::of_system("lay out the script", &error);
    let (folder, input) = laid_out.await.map_err(unready)?;
    let args = arguments(&folder);
    let program = Executable {
        path: &compiler.path,
        args: &args,
        named_by: NamedBy::Worker,
    };
    let inherited = Inherited {
        input: input.into(),
        environment: process::own_environment(&folder, variables(&folder))?,
        calls: None,
    };
    let process = Process::start(program, &building, &folder, inherited, &orders)?;
    let end = process.wait(&building, dropped).await;
    let ended = process.end(end).await?;
    let target = entry.path.join(PROGRAM);
    let report = process::blocking(move || {
        let mut report = ended.report(|status, _| match status.success() {
            true => Ok(Vec::new()),
            false => Err(process::failed(status)),
        });
        match &report.result {
            Ok(_) => {
                let mut program = folder.open_outcome()?;
                io::copy(&mut program, &mut fs::File::create(&target)?)?;
                fs::set_permissions(&target, fs::Permissions::from_mode(0o700))?;
            }
            Err(failure) if failure.kind == FailureKind::Script => {
                report.result = Err(compile_error(&report.stderr, &report.stdout));
            }
            Err(_) => {}
        }
        drop(folder);
        Ok(report)
    });
    let report = report
        .await
        .map_err(|error| process::cannot("keep the compiled program", &error))?;
    report.bounded().result.map(drop)
}

/// Returns variables for the compiler: its folders.
fn variables(folder: &Folder) -> [(&'static str, OsString); 2] {
    [("VTMP", ".vtmp"), ("VMODULES", ".vmodules")]
        .map(|(name, below)| (name, folder.work().join(below).into()))
}

/// Returns the arguments of the compiler.
fn arguments(folder: &Folder) -> [OsString; 5] {
    let [gc, none, out] = ["-gc", "none", "-o"].map(OsString::from);
    [gc, none, out, folder.outcome().into(), SCRIPT.into()]
}

/// Returns the failure of the compiler: its first error with line and column, as in `script.v:3:5: error: …`, else its last
/// words. No retry can help.
fn compile_error(stderr: &[u8], stdout: &[u8]) -> Failure {
    let text = [
        String::from_utf8_lossy(stderr),
        String::from_utf8_lossy(stdout),
    ];
    let text = text.join("\n");
    let read = |line: &str| {
        let (_, rest) = line.split_once("script.v:")?;
        let (number, rest) = rest.split_once(':')?;
        let (column, rest) = rest.split_once(':')?;
        let message = rest.trim().strip_prefix("error:")?.trim();
        let at = SourcePosition {
            line: number.parse().ok()?,
            column: column.parse().ok()?,
        };
        Some(format!("{message}{at}"))
    };
    let text = text.trim();
    let last = &text[text.ceil_char_boundary(text.len().saturating_sub(LAST_WORDS))..];
    let what = text.lines().find_map(read);
    let what = what.unwrap_or_else(|| last.to_owned());
    let message = format!("the script cannot be compiled as V: {what}");
    let mut failure = Failure::new(FailureKind::Permanent, message);
    failure.traceback = Some(text.to_owned());
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_has_its_line_and_column() {
        let stderr = b"script.v:1:8: warning: module unused\n./script.v:3:5: error: undefined ident: `x`\n  |\n";
        let failure = compile_error(stderr, b"");
        assert_eq!(failure.kind, FailureKind::Permanent);
        assert_eq!(
            failure.message,
            "the script cannot be compiled as V: undefined ident: `x` (line 3, column 5)"
        );
        let failure = compile_error(b"builder error: cannot find tcc\n", b"");
        assert!(
            failure
                .message
                .ends_with(": builder error: cannot find tcc")
        );
    }
}
