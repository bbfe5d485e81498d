//! The case that noticed each mutation in the last recorded run. It is tried first, which shortens an hour to
//! seconds. The result does not depend on it: if that case does not notice, the others run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use super::read;
use crate::cases::Failure;

/// Name of the file.
const RECORDED: &str = "killed_by.txt";

/// Mutations such as `claim::lease_not_written`, with the case that noticed each, such as `claim::pops_the_id`.
pub type Noticed = BTreeMap<String, String>;

/// Returns the recorded cases.
///
/// # Errors
/// The file cannot be read.
pub fn recorded() -> Result<Noticed, Failure> {
    let line = |line: &str| {
        let (mutation, case) = line.split_once(' ')?;
        Some((mutation.to_owned(), case.to_owned()))
    };
    let text = read::read(&Path::new(read::FOLDER).join(RECORDED))?;
    Ok(text.lines().filter_map(line).collect())
}

/// Writes `noticed` to the file that the next run reads.
///
/// # Errors
/// The file cannot be written.
pub fn record(noticed: &Noticed) -> io::Result<()> {
    let mut text = String::new();
    for (mutation, case) in noticed {
        let _ = writeln!(text, "{mutation} {case}");
    }
    fs::write(Path::new(read::FOLDER).join(RECORDED), text)
}
