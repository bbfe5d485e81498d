//! Files in which the processes of a scenario record their actions, outside of the store, so that its failures cannot
//! change the record.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Appends a line, completely or not at all.
pub fn add(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Returns all lines; none if the file does not exist.
pub fn read(path: &Path) -> io::Result<Vec<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
