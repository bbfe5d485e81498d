//! `meshwork context audit`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use meshwork::context::{AuditEntry, ContextHandle, Identity, Refusals};
use meshwork_model::keys::context::ContextId;
use meshwork_model::time;
use serde::Serialize;

use super::audit_file::AuditFile;
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::{Column, OutError, Row, one_line};

/// Interval of polls with `--follow`.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Entries of one page.
const PAGE: usize = 500;
/// Longest value on a line, in bytes.
const SHOWN: usize = 200;

/// Show the changes of a context, or its refused requests, with their actors
///
/// Refused requests are counted: --refused shows a row for each actor and minute, with the reason of the last one.
#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    /// The context [default: the only one of the node]
    #[arg(value_name = "CONTEXT")]
    id: Option<ContextId>,
    /// Print new entries as they are added, until Ctrl-C
    #[arg(short, long)]
    follow: bool,
    /// Greatest number of entries, the latest ones, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=1000))]
    limit: u32,
    /// Append all entries that the file does not have yet to it, as JSON lines; with -f, also new ones. The file is
    /// created with the rights 0600
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    to: Option<PathBuf>,
    /// Show the refused requests of each actor by minute, the latest --limit rows
    #[arg(long, conflicts_with_all = ["follow", "to"])]
    refused: bool,
    #[command(flatten)]
    args: ContextArgs,
}

impl Audit {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let id = self.id.or(self.args.context);
        let args = ContextArgs {
            context: id,
            ..self.args
        };
        let (me, handle) = args.open(context).await?;
        if let Some(path) = &self.to {
            append(&me, &handle, path, self.follow).await?;
            return Ok(Exit::DONE);
        }
        if self.refused {
            let rows = handle.refusals(&me, self.limit as usize).await?;
            context.out.rows(rows.into_iter().map(Refused))?;
            return Ok(Exit::DONE);
        }
        let mut entries = handle.audit(&me, None, self.limit as usize).await?;
        let mut last = "0-0".to_owned();
        loop {
            for entry in &entries {
                print(context, entry)?;
            }
            if let Some(entry) = entries.last() {
                last.clone_from(&entry.id);
            }
            if !self.follow {
                return Ok(Exit::DONE);
            }
            context.out.flush()?;
            if entries.len() < PAGE {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            entries = handle.audit(&me, Some(&last), PAGE).await?;
        }
    }
}

/// Refused requests of an actor in one minute.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Refused(Refusals);

impl Row for Refused {
    fn columns() -> Vec<Column> {
        Column::named(["minute", "who", "refused", "last"], &["refused"])
    }

    fn cells(&self) -> Vec<String> {
        let Refusals {
            at,
            who,
            count,
            last,
        } = &self.0;
        let at = time::iso(u64::from(*at) * 1000);
        vec![at, who.clone(), count.to_string(), one_line(last, SHOWN)]
    }
}

/// Appends the entries that the file does not have, in pages.
async fn append(
    me: &Identity,
    handle: &ContextHandle,
    path: &Path,
    follow: bool,
) -> Result<(), CommandError> {
    let mut file = AuditFile::open(path)?;
    loop {
        let entries = handle.audit(me, Some(file.last()), PAGE).await?;
        file.append(&entries)?;
        match (entries.len() < PAGE, follow) {
            (true, false) => return Ok(()),
            (true, true) => tokio::time::sleep(LOOK_EVERY).await,
            (false, _) => {}
        }
    }
}

fn print(context: &mut App, entry: &AuditEntry) -> Result<(), OutError> {
    if context.out.is_json() {
        return context.out.json(entry);
    }
    let at = time::iso(entry.at_ms);
    let change = match entry.before.is_empty() {
        true => one_line(&entry.after, SHOWN),
        false => format!(
            "{} -> {}",
            one_line(&entry.before, SHOWN),
            one_line(&entry.after, SHOWN)
        ),
    };
    let (who, what, object) = (&entry.who, &entry.what, &entry.object);
    context.out.line(
        format_args!("{at}  {who}  {what}  {object}  {change}")
            .to_string()
            .trim_end(),
    )
}
