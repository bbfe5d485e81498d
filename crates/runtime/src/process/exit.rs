//! Describes the end of a process, and reads its result from stdout.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use meshwork_model::job::limits::MAX_OUTPUT;
use meshwork_model::outcome::{Failure, FailureKind};

use super::capture::Printed;

/// Exit code of `sysexits.h` for a temporary failure.
const EX_TEMPFAIL: i32 = 75;

/// Returns the failure of a process that ended by itself with an error.
pub(in super::super) fn failed(status: ExitStatus) -> Failure {
    Failure::new(FailureKind::Script, words(status))
}

/// Returns the whole output as the result. `remedy` says how to print less.
pub(in super::super) fn printed(printed: &mut Printed, remedy: &str) -> Result<Vec<u8>, Failure> {
    printed.whole.take().ok_or_else(|| {
        let message = format!(
            "the script printed {} bytes, the limit of a result is {MAX_OUTPUT}: {remedy}",
            printed.size
        );
        Failure::new(FailureKind::Permanent, message)
    })
}

pub(in super::super) fn words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(EX_TEMPFAIL), _) => format!("exit status {EX_TEMPFAIL} (EX_TEMPFAIL)"),
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => match name(signal) {
            Some(name) => format!("killed by signal {signal} ({name})"),
            None => format!("killed by signal {signal}"),
        },
        (None, None) => status.to_string(),
    }
}

/// Returns the name of a signal that ends programs and has the same number on every system.
fn name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_is_told() {
        for (raw, words_for_it) in [
            (3 << 8, "exit status 3"),
            (75 << 8, "exit status 75 (EX_TEMPFAIL)"),
            (9, "killed by signal 9 (SIGKILL)"),
            (64, "killed by signal 64"),
        ] {
            assert_eq!(words(ExitStatus::from_raw(raw)), words_for_it);
        }
    }
}
