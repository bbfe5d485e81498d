//! `meshwork import`.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::{Path, PathBuf};

use meshwork::Target;
use meshwork_broker::conn::import_aof;
use meshwork_model::number::counted;
use serde::Serialize;

use super::export::failed;
use crate::app::App;
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
    #[arg(required_unless_present = "aof")]
    file: Option<PathBuf>,
    /// Import the append-only files of a stopped Redis server into an empty data directory: the server's directory, or
    /// its appendonlydir. This is the way back after a server was started on a data directory
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    aof: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Adopted {
    files: usize,
    keys: u64,
}

impl Import {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let name = match (self.file, self.aof) {
            (_, Some(from)) => return from_aof(context, &from).await,
            (file, None) => file.unwrap_or_default(),
        };
        let file = open(&name).map_err(|error| {
            let message = format!("cannot read {}: {error}", name.display());
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
}

/// Opens the file. Stdin is copied into a file, since it is read twice.
fn open(name: &Path) -> io::Result<File> {
    if name != Path::new("-") {
        return File::open(name);
    }
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// Imports the append-only files of a server.
async fn from_aof(context: &mut App, from: &Path) -> Result<Exit, CommandError> {
    let Target::Directory(data) = context.place.target()? else {
        return Err(CommandError::usage(
            "--aof imports into a data directory, not into a server: leave out --redis and REDIS_URL",
        ));
    };
    let from = from.to_owned();
    let imported = tokio::task::spawn_blocking(move || import_aof(&data, &from)).await;
    let imported = imported
        .map_err(|source| CommandError::new(Exit::SYSTEM, source))?
        .map_err(CommandError::usage)?;
    // The store must open, too.
    context.client().await?;
    let (files, keys) = (imported.files.len(), imported.keys);
    if context.out.is_json() {
        context.out.json(&Adopted { files, keys })?;
        return Ok(Exit::DONE);
    }
    for file in &imported.files {
        note(format_args!("read {}", file.display()));
    }
    note(format_args!("{} imported", counted(keys, "key")));
    Ok(Exit::DONE)
}
