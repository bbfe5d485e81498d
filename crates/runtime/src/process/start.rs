//! Start of a process: the reasons for which a run has not started, and whose fault each is. This alone decides whether
//! a job fails or waits for a worker that can run it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use meshwork_model::job::exec::shebang;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::secret::EnvVars;
use rustix::io::Errno;

/// Most bytes of a `#!` line, as in Linux.
const MAX_SHEBANG: u64 = 256;
/// Most characters of a variable's name in an error.
const SHOWN: usize = 64;
/// Bits of a file's mode, of which an executable one has some.
const ANY_EXECUTE: u32 = 0o111;

/// A program to start.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Executable<'a> {
    pub(in super::super) path: &'a Path,
    pub(in super::super) args: &'a [OsString],
    pub(in super::super) named_by: NamedBy,
}

/// The side that names a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum NamedBy {
    /// The worker: an interpreter.
    Worker,
    /// The job.
    Job,
}

impl Executable<'_> {
    /// Describes what the process is handed, for a system that refuses it: the variable or argument with a NUL character,
    /// else the largest one.
    pub(super) fn handed(&self, env: &EnvVars) -> String {
        let of_env = env.iter();
        let of_env = of_env
            .map(|(name, value)| (name.len() + value.len(), Some(name), value.contains('\0')));
        let args = self
            .args
            .iter()
            .map(|arg| (arg.len(), None, arg.as_encoded_bytes().contains(&0)));
        let (mut total, mut largest) = (0, (0, None, false));
        for one in of_env.chain(args) {
            total += one.0;
            if (one.2, one.0) > (largest.2, largest.0) {
                largest = one;
            }
        }
        let (size, name, has_nul) = largest;
        let shown = name.map(|name| name.chars().take(SHOWN).collect::<String>());
        let what = shown.map_or("an argument".to_owned(), |name| {
            format!("the variable `{name}`")
        });
        match has_nul {
            true => format!("{what} contains a NUL character"),
            false => format!(
                "{what} takes {size} bytes, all variables and arguments {total}; pass large data as input"
            ),
        }
    }
}

/// Reason why a run has not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum NotStarted {
    /// The worker lacks what every run needs. The job waits.
    Worker(String),
    /// The job's variables or arguments cannot be those of a process. No worker can run it.
    Job(String),
    /// The program that the job names cannot be executed here. A retry may find it changed.
    Program(String),
}

impl NotStarted {
    /// Returns the reason for an error of the system before a program was involved.
    pub(in super::super) fn of_system(what: &str, error: &io::Error) -> Self {
        Self::Worker(format!("cannot {what}: {error}"))
    }

    /// Returns the reason for which variables cannot be those of a process.
    pub(super) fn of_variables(error: &io::Error) -> Self {
        match is_of_job(error) {
            true => Self::Job(format!("cannot start the script: {error}")),
            false => Self::of_system("start the script", error),
        }
    }

    /// Returns the reason for an error of the first process, which is the launcher if there is one.
    pub(super) fn of_spawn(
        error: &io::Error,
        program: Executable<'_>,
        handed: &str,
        command: &std::process::Command,
    ) -> Self {
        let first = Path::new(command.get_program());
        match first != program.path && !is_of_job(error) {
            true => {
                let folder = command.get_current_dir().unwrap_or(Path::new(""));
                Self::Worker(format!(
                    "cannot start the launcher of the script, `{}` in {}: {error}",
                    first.display(),
                    folder.display()
                ))
            }
            false => Self::of_program(error, program.path, program.named_by, handed),
        }
    }

    /// Returns the reason for an error of the program's execution. `handed`: see [`Executable::handed`].
    pub(super) fn of_program(
        error: &io::Error,
        path: &Path,
        named_by: NamedBy,
        handed: &str,
    ) -> Self {
        let message = match is_of_job(error) {
            true => return Self::Job(format!("cannot start the script: {error}: {handed}")),
            false => format!(
                "cannot start `{}`: {error}{}",
                path.display(),
                cause(error, path)
            ),
        };
        match named_by {
            NamedBy::Job if !is_of_host(error) => Self::Program(message),
            NamedBy::Job | NamedBy::Worker => Self::Worker(message),
        }
    }
}

/// Returns the cause of an error that the file itself does not show: the interpreter that its `#!` line names.
fn cause(error: &io::Error, path: &Path) -> String {
    let of_file = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
    );
    let interpreter = of_file.then(|| interpreter_of(path)).flatten();
    let state = |interpreter: &Path| match interpreter.metadata() {
        Err(_) => Some("does not exist"),
        Ok(found) if !found.is_file() || found.permissions().mode() & ANY_EXECUTE == 0 => {
            Some("is not executable")
        }
        Ok(_) => None,
    };
    let described = interpreter.and_then(|interpreter| {
        let state = state(&interpreter)?;
        Some(format!(
            ": its interpreter `{}` {state}",
            interpreter.display()
        ))
    });
    described.unwrap_or_default()
}

/// Returns the interpreter that the `#!` line of a file names.
pub(in super::super) fn interpreter_of(file: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(MAX_SHEBANG).read_to_end(&mut start));
    let is_named = read.is_ok() && start.starts_with(b"#!");
    is_named.then(|| shebang(&String::from_utf8_lossy(&start)).0.into())
}

/// Returns true if a variable or argument contains NUL, or all of them are too large.
fn is_of_job(error: &io::Error) -> bool {
    let kind = error.kind();
    matches!(
        kind,
        io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong
    )
}

/// Returns true if the host lacks a resource, whichever program is started.
fn is_of_host(error: &io::Error) -> bool {
    let lacks = [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::IO,
    ];
    let number = error.raw_os_error();
    lacks.iter().any(|one| number == Some(one.raw_os_error()))
}

impl From<NotStarted> for Failure {
    fn from(reason: NotStarted) -> Self {
        let (kind, message) = match reason {
            NotStarted::Worker(message) => (FailureKind::NotStarted, message),
            NotStarted::Job(message) => (FailureKind::Permanent, message),
            NotStarted::Program(message) => (FailureKind::Script, message),
        };
        Self::new(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(errno: Errno, named_by: NamedBy) -> FailureKind {
        let error = io::Error::from(errno);
        let reason = NotStarted::of_program(&error, Path::new("/p"), named_by, "");
        Failure::from(reason).kind
    }

    #[test]
    fn a_job_fails_only_for_its_own_fault() {
        for errno in [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE] {
            assert_eq!(kind(errno, NamedBy::Job), FailureKind::NotStarted);
            assert_eq!(kind(errno, NamedBy::Worker), FailureKind::NotStarted);
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::NOEXEC] {
            assert_eq!(kind(errno, NamedBy::Job), FailureKind::Script);
            assert_eq!(kind(errno, NamedBy::Worker), FailureKind::NotStarted);
        }
        assert_eq!(kind(Errno::TOOBIG, NamedBy::Worker), FailureKind::Permanent);
        assert_eq!(kind(Errno::INVAL, NamedBy::Job), FailureKind::Permanent);
    }

    #[test]
    fn an_error_of_the_launcher_is_the_workers() {
        let program = Executable {
            path: Path::new("/p"),
            args: &[],
            named_by: NamedBy::Job,
        };
        let kind = |errno: Errno, is_launched| {
            let first = if is_launched { "/launcher" } else { "/p" };
            let command = std::process::Command::new(first);
            let reason = NotStarted::of_spawn(&errno.into(), program, "", &command);
            Failure::from(reason).kind
        };
        // The working directory is gone.
        assert_eq!(kind(Errno::NOENT, true), FailureKind::NotStarted);
        assert_eq!(kind(Errno::NOENT, false), FailureKind::Script);
        assert_eq!(kind(Errno::TOOBIG, true), FailureKind::Permanent);
    }
}
