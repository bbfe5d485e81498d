//! `meshwork action dead`: dead letters of a service's actions.

use std::sync::Arc;

use clap::builder::NonEmptyStringValueParser;
use meshwork_broker::nooble::{DeadAction, Nooble, RetriedDead, Source};
use meshwork_model::time::iso;
use serde::Serialize;

use super::{Side, part};
use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// Look at the dead letters of a service's actions, or retry one
#[derive(Debug, clap::Subcommand)]
pub(crate) enum DeadCommand {
    List(List),
    /// Show one as it was received
    ///
    /// Writes the exact bytes into a file or a pipe; on a terminal a missing newline is added. With --json, prints text
    /// and the fields beside it.
    Show(One),
    /// Return one to its queue with all its attempts, and print its id
    #[command(visible_alias = "replay")]
    Retry(One),
}

/// Options that select the dead letters.
#[derive(Debug, clap::Args)]
struct Of {
    #[command(flatten)]
    side: Side,
    /// Service whose actions, or callbacks, failed
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    service: String,
    /// Context of the service's queue, as a tenant's
    #[arg(long, value_name = "NAME", value_parser = part)]
    context: Option<String>,
    /// Dead letters of this callback event of the service, instead of its actions
    #[arg(long, value_name = "EVENT", conflicts_with = "context", value_parser = NonEmptyStringValueParser::new())]
    callback: Option<String>,
}

impl Of {
    fn source(&self, broker: &Nooble) -> Arc<Source> {
        match &self.callback {
            Some(event) => broker.callbacks(&self.service, event, None),
            None => broker.actions(&self.service, self.context.as_deref()),
        }
    }
}

/// List dead letters, newest first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    of: Of,
    /// Greatest number of rows, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u16>(1..=1000))]
    limit: u16,
}

#[derive(Debug, clap::Args)]
pub(crate) struct One {
    #[command(flatten)]
    of: Of,
    /// Id of the dead letter, as `dead list` shows it
    #[arg(value_parser = id)]
    id: String,
}

/// Parses the id of an entry of a stream.
fn id(text: &str) -> Result<String, String> {
    let digits = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
    let number = |part: &str| digits(part) && part.parse::<u64>().is_ok();
    let sound = text.split('-').count() == 2 && text.split('-').all(number);
    let said = "it is no id of a dead letter: give one as `dead list` shows it";
    sound
        .then(|| text.to_owned())
        .ok_or_else(|| said.to_owned())
}

#[derive(Debug, Serialize)]
struct Letter<'a> {
    id: &'a str,
    at: String,
    runs: u32,
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a str>,
    message: std::borrow::Cow<'a, str>,
}

impl Row for Letter<'_> {
    fn columns() -> Vec<Column> {
        Column::named(["id", "at", "runs", "error"], &["runs"])
    }

    fn optional() -> &'static [&'static str] {
        &["at", "runs"]
    }

    fn cells(&self) -> Vec<String> {
        let (id, error) = (self.id.to_owned(), self.error.to_owned());
        vec![id, self.at.clone(), self.runs.to_string(), error]
    }
}

#[derive(Debug, Serialize)]
struct Back<'a> {
    replayed: &'a str,
}

impl DeadCommand {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Show(one) => one.show(context).await,
            Self::Retry(one) => one.replay(context).await,
        }
    }
}

fn absent(id: &str) -> CommandError {
    let message =
        format!("there is no dead letter {id}: `meshwork dead list --protocol nooble` lists them");
    CommandError::new(Exit::NO_JOB, message)
}

fn letter(of: &DeadAction) -> Letter<'_> {
    Letter {
        id: &of.id,
        at: iso(of.at_ms),
        runs: of.runs,
        error: &of.error,
        queue: of.queue.as_deref(),
        message: String::from_utf8_lossy(&of.message),
    }
}

impl List {
    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let broker = self.of.side.broker(context).await?;
        let source = self.of.source(&broker);
        let dead = broker.dead(&source, None, self.limit.into()).await?;
        context.out.rows(dead.letters.iter().map(letter))?;
        Ok(Exit::DONE)
    }
}

impl One {
    async fn show(self, context: &mut App) -> Result<Exit, CommandError> {
        let broker = self.of.side.broker(context).await?;
        let source = self.of.source(&broker);
        let Some(dead) = broker.dead_letter(&source, &self.id).await? else {
            return Err(absent(&self.id));
        };
        if context.out.is_json() {
            context.out.json(&letter(&dead))?;
        } else {
            context.out.exact(&dead.message)?;
        }
        Ok(Exit::DONE)
    }

    async fn replay(self, context: &mut App) -> Result<Exit, CommandError> {
        let broker = self.of.side.broker(context).await?;
        let source = self.of.source(&broker);
        match broker.retry_dead(&source, &self.id).await? {
            RetriedDead::Back => {}
            RetriedDead::Absent => return Err(absent(&self.id)),
            RetriedDead::Elsewhere(queue) => {
                let dialect = broker.names().dialect().other().as_str();
                let id = self.id;
                return Err(CommandError::usage(format_args!(
                    "the dead letter {id} came from the queue {queue}, of the other dialect, and is not changed: give \
                     --dialect {dialect}"
                )));
            }
        }
        if context.out.is_json() {
            context.out.json(&Back { replayed: &self.id })?;
        } else {
            context.out.line(&self.id)?;
        }
        Ok(Exit::DONE)
    }
}
