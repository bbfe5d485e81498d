//! The first line of a script, with its flags: `#!lua flags=no-writes,allow-oom`.

use crate::resp::split_words;

/// The flags of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Declared {
    /// True if there is such a line. Without it nothing is checked before the script runs.
    pub(super) any: bool,
    /// True if the script only reads.
    pub(super) no_writes: bool,
}

/// Parses the flags, and returns the start of the Lua code: the end of the first line, so that line numbers stay.
pub(super) fn parse(body: &[u8]) -> Result<(Declared, usize), String> {
    if !body.starts_with(b"#!") {
        return Ok((Declared::default(), 0));
    }
    let Some(end) = body.iter().position(|byte| *byte == b'\n') else {
        return Err("Invalid script shebang".to_owned());
    };
    let words = split_words(&body[..end]).unwrap_or_default();
    let mut words = words.iter().map(|word| String::from_utf8_lossy(word));
    let Some(engine) = words.next() else {
        return Err("Invalid engine in script shebang".to_owned());
    };
    if engine != "#!lua" {
        return Err(format!("Unexpected engine in script shebang: {engine}"));
    }
    let mut declared = Declared {
        any: true,
        ..Declared::default()
    };
    for word in words {
        let Some(flags) = word.strip_prefix("flags=") else {
            return Err(format!("Unknown lua shebang option: {word}"));
        };
        for flag in flags.split(',').filter(|_| !flags.is_empty()) {
            match flag {
                "no-writes" => declared.no_writes = true,
                // There is no memory limit, no stale replica and no cluster here.
                "allow-oom" | "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                _ => return Err(format!("Unexpected flag in script shebang: {flag}")),
            }
        }
    }
    Ok((declared, end))
}
