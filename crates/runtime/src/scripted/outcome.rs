//! Outcome of a script: written by its process into a file, and read from there, the exit status, and the output.

use std::io::Read;
use std::process::ExitStatus;
use std::time::Duration;

use meshwork_model::job::limits::MAX_OUTPUT;
use meshwork_model::outcome::{Failure, FailureKind};

use super::super::process::{self, Printed};
use super::super::verdict;
use super::super::workdir::Folder;

/// Greatest number of bytes to read from that file: a result, and a line before it.
const MAX_FILE: u64 = MAX_OUTPUT as u64 + 64;

/// Content of the bootstrap's file.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    /// The value of `result`.
    Result(Vec<u8>),
    /// The script ended without setting `result`.
    Nothing,
    /// The script failed.
    Failed(Failure),
    /// The file does not exist: the process ended by itself, or was killed.
    Silence,
}

/// Returns the result of a script, or its failure.
pub(super) fn result(
    folder: &Folder,
    status: ExitStatus,
    printed: &mut Printed,
) -> Result<Vec<u8>, Failure> {
    match read(folder) {
        Left::Failed(failure) => Err(failure),
        _ if !status.success() => Err(process::failed(status)),
        Left::Result(result) => Ok(result),
        Left::Nothing | Left::Silence => process::printed(printed, "print less, or set `result`"),
    }
}

fn read(folder: &Folder) -> Left {
    let mut bytes = Vec::new();
    let read = folder.open_outcome().and_then(|mut file| {
        file.by_ref().take(1).read_to_end(&mut bytes)?;
        // A file without its first line is as long as the largest outcome.
        match &*bytes {
            [0] => Ok(0),
            _ => file.take(MAX_FILE).read_to_end(&mut bytes),
        }
    });
    match read {
        Ok(_) => parse(&bytes),
        Err(_) => Left::Silence,
    }
}

fn parse(bytes: &[u8]) -> Left {
    let Some((kind, rest)) = line(bytes) else {
        return Left::Silence;
    };
    let kind = match kind {
        b"result" => return Left::Result(rest.to_vec()),
        b"nothing" => return Left::Nothing,
        kind => kind,
    };
    let Some((kind, after)) = failure_kind(kind) else {
        return Left::Silence;
    };
    let Some((length, rest)) = line(rest) else {
        return Left::Silence;
    };
    let length = std::str::from_utf8(length)
        .ok()
        .and_then(|text| text.parse().ok());
    let (message, traceback) = rest.split_at(length.unwrap_or(rest.len()).min(rest.len()));
    let mut failure = Failure::new(kind, String::from_utf8_lossy(message));
    failure.after = after;
    failure.traceback =
        (!traceback.is_empty()).then(|| String::from_utf8_lossy(traceback).trim_end().to_owned());
    Left::Failed(failure)
}

/// Parses the kind of a failure, and its pause: a word, a blank, and the seconds.
fn failure_kind(line: &[u8]) -> Option<(FailureKind, Option<Duration>)> {
    let line = std::str::from_utf8(line).ok()?;
    let (word, seconds) = match line.split_once(' ') {
        Some((word, seconds)) => (word, Some(seconds.parse().ok()?)),
        None => (line, None),
    };
    let kind = match word {
        "permanent" => FailureKind::Permanent,
        "script" | "retry" => FailureKind::Script,
        "snooze" => FailureKind::Snoozed,
        "discard" => FailureKind::Discarded,
        _ => return None,
    };
    let after = seconds.map(verdict::pause).transpose().ok()?;
    Some((kind, after))
}

/// Returns the content of the file for an outcome.
#[cfg(feature = "sal")]
pub(in super::super) fn encode(outcome: Result<Vec<u8>, Failure>) -> Vec<u8> {
    let failure = match outcome {
        Ok(result) => return [b"result\n".as_slice(), &result].concat(),
        Err(failure) => failure,
    };
    let word = match failure.kind {
        FailureKind::Permanent => "permanent",
        FailureKind::Snoozed => "snooze",
        FailureKind::Discarded => "discard",
        _ => "script",
    };
    let pause = failure
        .after
        .map(|after| format!(" {}", after.as_secs_f64()));
    let (pause, message) = (pause.unwrap_or_default(), &failure.message);
    let traceback = failure.traceback.as_deref().unwrap_or_default();
    format!("{word}{pause}\n{}\n{message}{traceback}", message.len()).into_bytes()
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..end], &bytes[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_bootstrap_leaves_is_read() {
        assert_eq!(parse(b"result\na\nb"), Left::Result(b"a\nb".to_vec()));
        assert_eq!(parse(b"nothing\n"), Left::Nothing);
        let Left::Failed(failure) = parse(b"permanent\n3\na\nb  File\n") else {
            panic!()
        };
        assert_eq!(
            (failure.kind, failure.message.as_str()),
            (FailureKind::Permanent, "a\nb")
        );
        assert_eq!(failure.traceback.as_deref(), Some("  File"));
        let Left::Failed(failure) = parse(b"snooze 1.5\n1\nx") else {
            panic!()
        };
        let pause = Some(Duration::from_millis(1500));
        assert_eq!((failure.kind, failure.after), (FailureKind::Snoozed, pause));
    }

    #[cfg(feature = "sal")]
    #[test]
    fn an_outcome_is_read_as_it_was_written() {
        assert_eq!(
            parse(&encode(Ok(b"a\nb".to_vec()))),
            Left::Result(b"a\nb".to_vec())
        );
        let mut failure = Failure::new(FailureKind::Snoozed, "not\nyet");
        failure.after = Some(Duration::from_millis(1500));
        failure.traceback = Some("line 1".to_owned());
        assert_eq!(parse(&encode(Err(failure.clone()))), Left::Failed(failure));
        let failure = Failure::new(FailureKind::Permanent, "");
        assert_eq!(parse(&encode(Err(failure.clone()))), Left::Failed(failure));
    }

    #[test]
    fn a_script_that_meddles_with_it_harms_only_itself() {
        for bytes in [
            &b""[..],
            b"result",
            b"huh\n1\n",
            b"snooze x\n1\n",
            b"retry -1\n1\nx",
            b"script\n",
        ] {
            assert_eq!(parse(bytes), Left::Silence);
        }
        let Left::Failed(failure) = parse(b"script\n99999999999999999999\nbad \xff") else {
            panic!()
        };
        assert_eq!(
            (failure.message.as_str(), failure.traceback),
            ("bad \u{fffd}", None)
        );
    }
}
