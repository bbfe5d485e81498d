//! Which case noticed each mutation when it was last recorded: it is tried first, which makes seconds of an hour.
//! Nothing is decided by it: what a case does not notice any more, the others are asked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::read;
use crate::cases::Failure;

/// The file.
const RECORDED: &str = "noticed.txt";

/// A mutation, as `claim::lease_not_written`, and the case that noticed it, as `claim::pops_the_id`.
pub type Noticed = BTreeMap<String, String>;

/// What is recorded.
///
/// # Errors
/// When the file cannot be read.
pub fn recorded() -> Result<Noticed, Failure> {
    let line = |line: &str| {
        let (mutation, case) = line.split_once(' ')?;
        Some((mutation.to_owned(), case.to_owned()))
    };
    let text = read::read(&Path::new(read::FOLDER).join(RECORDED))?;
    Ok(text.lines().filter_map(line).collect())
}

/// Writes `noticed` where the next run reads it.
///
/// # Errors
/// When the file cannot be written.
pub fn record(noticed: &Noticed) -> io::Result<()> {
    let mut text = String::new();
    for (mutation, case) in noticed {
        let _ = writeln!(text, "{mutation} {case}");
    }
    fs::write(Path::new(read::FOLDER).join(RECORDED), text)
}
