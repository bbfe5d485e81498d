//! Exit codes. They are stable, since scripts rely on them, and `--help` lists them.

use std::process::ExitCode;

/// Exit code of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// Success.
    pub(crate) const DONE: Self = Self(0);
    /// A job failed, its state or its queue does not allow the request, or `doctor` found a problem.
    pub(crate) const FAILED: Self = Self(1);
    /// Bad usage or bad input; nothing was done. clap uses the same code.
    pub(crate) const USAGE: Self = Self(2);
    /// No connection, the server is unsuitable or refuses calls, or a worker's name is not free yet.
    pub(crate) const SERVER: Self = Self(3);
    /// The job did not end within the wait.
    pub(crate) const NOT_ENDED: Self = Self(4);
    /// The job, schedule or batch does not exist.
    pub(crate) const NO_JOB: Self = Self(5);
    /// The system failed: no thread, no room for the output, no such address.
    pub(crate) const SYSTEM: Self = Self(6);
    /// The reader of stdout is gone; same code as after SIGPIPE.
    pub(crate) const NO_READER: Self = Self::signal(13);

    /// Code after a signal, as in shells.
    pub(crate) const fn signal(number: u8) -> Self {
        Self(128 + number)
    }

    /// Returns the first code that is not [`Exit::DONE`].
    pub(crate) fn or(self, other: Self) -> Self {
        if self == Self::DONE { other } else { self }
    }

    /// Returns the code as a number.
    pub(crate) const fn code(self) -> u8 {
        self.0
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}

/// Table of codes for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0    success
  1    a job failed, its state or its queue does not allow the request, or doctor found a problem
  2    bad usage or bad input; nothing was written
  3    no connection, the server is unsuitable or refuses a call, or the name of a worker is not free yet
  4    the job did not end within the wait
  5    the job, schedule or batch does not exist
  6    a system error: no thread, a file or the output cannot be written, or the address is in use
  130  interrupted by SIGINT (128 and the number of the signal; 143 for SIGTERM)
  141  the reader of the output is gone

A duration is seconds (10, 0.5) or has units (500ms, 10s, 5m, 1h30m, 7d).

Data goes to stdout, everything else to stderr. With --json, lists are printed as one line of
JSON per item, and other data as one object.";
