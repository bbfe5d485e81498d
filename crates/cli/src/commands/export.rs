//! `meshwork export`.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::context::Node;
use meshwork::{Client, TransferError, Transferred};
use meshwork_model::number::counted;
use tempfile::NamedTempFile;
use tokio::time::Instant;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Interval of checks for running jobs.
const POLL: Duration = Duration::from_millis(100);
/// Greatest number of contexts that the note names.
const NAMED: usize = 10;

/// Write all jobs, batches, schedules and limits to a file, which `meshwork import` reads
///
/// The file has one JSON object per line, and contains the secrets of jobs. A job that runs cannot be exported: stop the
/// workers first. Contexts, with their jobs, flows and messages, are not exported; a note names them. The command changes nothing. If it is interrupted, no file is written; start it again.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// File to write; - is stdout
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Wait until no job runs, for at most this time [default: 7 days]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, num_args = 0..=1, require_equals = true,
          default_missing_value = parsers::LONGEST_WAIT)]
    wait: Option<Duration>,
}

impl Export {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        self.idle(&client).await?;
        let seen = if self.file == Path::new("-") {
            let mut out = BufWriter::new(io::stdout());
            client.export(&mut out).await.map_err(failed)?
        } else {
            self.to_file(&client).await?
        };
        for list in &seen.skipped {
            note(format_args!("left out: {list} is a list without jobs"));
        }
        note(format_args!(
            "{}, {}, {} and {} exported",
            counted(seen.jobs, "job"),
            counted(seen.batches, "batch"),
            counted(seen.schedules, "schedule"),
            counted(seen.settings, "setting")
        ));
        if let Some(rest) = left_out(&client).await {
            note(rest);
        }
        Ok(Exit::DONE)
    }

    /// Waits until no job runs, with `--wait`.
    async fn idle(&self, client: &Client) -> Result<(), CommandError> {
        let until = Instant::now() + self.wait.unwrap_or_default();
        while Instant::now() < until {
            if client.broker().running().await? == 0 {
                break;
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Writes the file: the whole file exists, or none.
    async fn to_file(&self, client: &Client) -> Result<Transferred, CommandError> {
        let unwritten = |error: io::Error| {
            let message = format!("cannot write {}: {error}", self.file.display());
            CommandError::new(Exit::SYSTEM, io::Error::new(error.kind(), message))
        };
        let folder = self
            .file
            .parent()
            .filter(|path| !path.as_os_str().is_empty());
        let part = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(unwritten)?;
        let mut out = BufWriter::new(part);
        let seen = client.export(&mut out).await.map_err(failed)?;
        let part = out
            .into_inner()
            .map_err(|error| unwritten(error.into_error()))?;
        part.as_file().sync_all().map_err(unwritten)?;
        part.persist(&self.file)
            .map_err(|error| unwritten(error.error))?;
        Ok(seen)
    }
}

/// Describes the data of the store that an export leaves out, if there is any.
async fn left_out(client: &Client) -> Option<String> {
    let what = "their jobs, flows, messages and runners, and the node's actors";
    match Node::of(client.broker()).contexts().await {
        Ok(contexts) if contexts.is_empty() => None,
        Ok(contexts) => {
            let named = contexts.iter().take(NAMED).map(|it| it.id().to_string());
            let (named, many) = (named.collect::<Vec<_>>().join(", "), contexts.len());
            let more = if many > NAMED { ", …" } else { "" };
            Some(format!(
                "not exported: {} ({named}{more}), with {what}",
                counted(many, "context")
            ))
        }
        Err(error) => Some(format!("not exported: contexts, with {what} ({error})")),
    }
}

/// Converts an error of an export or an import.
pub(super) fn failed(error: TransferError) -> CommandError {
    use TransferError as E;
    match error {
        E::Broker(error) => error.into(),
        E::Io(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            CommandError::new(Exit::NO_READER, error)
        }
        E::Running { .. }
        | E::Started { .. }
        | E::OldList { .. }
        | E::Bound { .. }
        | E::Record(_) => CommandError::new(Exit::FAILED, error),
        E::Io(_) => CommandError::new(Exit::SYSTEM, error),
        _ => CommandError::usage(error),
    }
}
