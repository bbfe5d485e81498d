//! `meshwork queue limit`.

use meshwork::model::keys::hero::{Hero, NoWorkQueue};
use meshwork_broker::MAX_QUEUE_LIMIT;
use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::out::{Column, Table};

/// What stands for all queues that have no limit of their own.
const DEFAULT: &str = "default";

/// Show and set how many jobs may wait in a queue; one more is refused when it is submitted
#[derive(Debug, clap::Subcommand)]
pub(crate) enum LimitCommand {
    /// Show all limits
    Show,
    /// Set the limit of a queue; jobs that wait there already stay
    Set {
        #[command(flatten)]
        queue: Queue,
        /// How many; 0 lets nothing in
        #[arg(value_name = "N", allow_hyphen_values = true,
              value_parser = clap::value_parser!(u64).range(..=MAX_QUEUE_LIMIT))]
        limit: u64,
    },
    /// Take the limit of a queue away; the default holds for it then
    Clear {
        #[command(flatten)]
        queue: Queue,
    },
}

/// Which queue.
#[derive(Debug, clap::Args)]
pub(crate) struct Queue {
    /// As `queue list` shows it, or what follows `hero:q:work:type:` in it; `default` is for all that have
    /// no limit of their own. The list of each priority counts for itself
    #[arg(value_name = "QUEUE")]
    queue: String,
}

impl Queue {
    /// The list; none for all of them.
    fn list(&self, keys: &Hero) -> Result<Option<String>, NoWorkQueue> {
        if self.queue == DEFAULT {
            return Ok(None);
        }
        keys.parse_work_queue(&self.queue).map(Some)
    }
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    queue: &'a str,
    limit: Option<u64>,
}

impl LimitCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let (queue, limit) = match self {
            Self::Show => return show(context).await,
            Self::Set { queue, limit } => (queue, Some(limit)),
            Self::Clear { queue } => (queue, None),
        };
        let list = queue.list(&context.keys())?;
        let client = context.client().await?;
        client.limit_queue(list.as_deref(), limit).await?;
        let queue = list.as_deref().unwrap_or(DEFAULT);
        if context.out.is_json() {
            context.out.json(&Line { queue, limit })?;
        } else {
            let limit = limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
            context.out.line(format_args!("{queue} {limit}"))?;
        }
        Ok(Exit::DONE)
    }
}

async fn show(context: &mut Context) -> Result<Exit, Error> {
    let limits = context.client().await?.limits().await?;
    let default = limits.default.map(|limit| (DEFAULT, limit));
    let own = limits
        .queues
        .iter()
        .map(|(queue, limit)| (queue.as_str(), *limit));
    let mut table = Table::new([Column::text("queue"), Column::number("limit")]);
    for (queue, limit) in default.into_iter().chain(own) {
        if context.out.is_json() {
            let limit = Some(limit);
            context.out.json(&Line { queue, limit })?;
        } else {
            table.row([queue, &limit.to_string()]);
        }
    }
    if !context.out.is_json() {
        context.out.table(table)?;
    }
    Ok(Exit::DONE)
}
