//! One step of a run, as generated and as printed in a report.

use std::fmt;

/// One step: a request by one of the sessions, or a comparison of all data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Call { session: usize, args: Vec<Arg> },
    CompareData,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Arg {
    Bytes(Vec<u8>),
    /// The client id of a session, which differs by side.
    ClientOf(usize),
}

impl Step {
    pub(super) fn call(session: usize, args: Vec<Vec<u8>>) -> Self {
        Self::Call {
            session,
            args: args.into_iter().map(Arg::Bytes).collect(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CompareData => write!(f, "   (all data)"),
            Self::Call { session, args } => {
                write!(f, "{session}>")?;
                for arg in args {
                    match arg {
                        Arg::Bytes(bytes) => write!(f, " {}", quoted(bytes))?,
                        Arg::ClientOf(other) => write!(f, " <id of {other}>")?,
                    }
                }
                Ok(())
            }
        }
    }
}

/// Returns an argument in the syntax of redis-cli.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut text = String::from('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}
