//! `meshwork import`.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::{Path, PathBuf};

use super::export::failed;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Read a file of `meshwork export` into this store
///
/// The whole file is checked first. Jobs, batches, schedules and limits that exist already stay as they are. If the command
/// is interrupted, start it again with the same file. Workers may run meanwhile.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// File to read; - is stdin
    file: PathBuf,
}

impl Import {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let file = self.open().map_err(|error| {
            let message = format!("cannot read {}: {error}", self.file.display());
            CommandError::usage(io::Error::new(error.kind(), message))
        })?;
        let client = context.client().await?;
        let seen = client
            .import(&mut BufReader::new(file))
            .await
            .map_err(failed)?;
        if context.out.is_json() {
            context.out.json(&seen)?;
            return Ok(Exit::DONE);
        }
        for (what, new, left) in [
            ("jobs", seen.jobs, seen.jobs_left),
            ("batches", seen.batches, seen.batches_left),
            ("schedules", seen.schedules, seen.schedules_left),
            ("settings", seen.settings, seen.settings_left),
        ] {
            note(format_args!(
                "{what}: {new} imported, {left} existed already"
            ));
        }
        Ok(Exit::DONE)
    }

    /// Opens the file. Stdin is copied into a file, since it is read twice.
    fn open(&self) -> io::Result<File> {
        if self.file != Path::new("-") {
            return File::open(&self.file);
        }
        let mut file = tempfile::tempfile()?;
        io::copy(&mut io::stdin().lock(), &mut file)?;
        file.rewind()?;
        Ok(file)
    }
}
