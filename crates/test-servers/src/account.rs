//! Files in which the processes of a world say what they do: outside of Redis, so that nothing that goes wrong there
//! can change the account.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Adds a line, whole or not at all.
pub fn add(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// All lines; none where nobody has written.
pub fn read(path: &Path) -> io::Result<Vec<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
