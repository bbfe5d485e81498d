//! Start of a process: the reasons for which a run has not started, and whose fault each is. This alone decides whether
//! a job fails or waits for a worker that can run it.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use meshwork_model::outcome::{Failure, FailureKind};
use rustix::io::Errno;

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
    pub(super) fn of_spawn(error: &io::Error, program: Executable<'_>, is_launched: bool) -> Self {
        match is_launched && !is_of_job(error) {
            true => Self::of_system("start the script", error),
            false => Self::of_program(error, program.path, program.named_by),
        }
    }

    /// Returns the reason for an error of the program's execution.
    pub(super) fn of_program(error: &io::Error, path: &Path, named_by: NamedBy) -> Self {
        let message = match is_of_job(error) {
            true => return Self::Job(format!("cannot start the script: {error}")),
            false => format!("cannot start `{}`: {error}", path.display()),
        };
        match named_by {
            NamedBy::Job if !is_of_host(error) => Self::Program(message),
            NamedBy::Job | NamedBy::Worker => Self::Worker(message),
        }
    }
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
        let reason = NotStarted::of_program(&error, Path::new("/p"), named_by);
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
            let reason = NotStarted::of_spawn(&errno.into(), program, is_launched);
            Failure::from(reason).kind
        };
        // The working directory is gone.
        assert_eq!(kind(Errno::NOENT, true), FailureKind::NotStarted);
        assert_eq!(kind(Errno::NOENT, false), FailureKind::Script);
        assert_eq!(kind(Errno::TOOBIG, true), FailureKind::Permanent);
    }
}
