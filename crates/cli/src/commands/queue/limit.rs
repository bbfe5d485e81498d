//! `meshwork queue limit`.

use meshwork::Settings;
use meshwork::model::queue::{MAX_CONCURRENCY, MAX_PAYLOAD, QueueSetting, Rate};
use meshwork_broker::MAX_QUEUE_LIMIT;

use super::line::{Line, print};
use super::{Queue, UsageError};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// What stands for all queues that have no limit of their own.
const DEFAULT: &str = "default";

/// Show, set and remove limits: how many jobs wait, run and start, and how large they are
#[derive(Debug, clap::Subcommand)]
pub(crate) enum LimitCommand {
    /// Show all that is set, or what is set for one queue
    Show {
        /// As `queue list` shows it, or what follows `hero:q:work:type:` in it; or `default`
        queue: Option<String>,
    },
    Set(Box<Set>),
    #[command(visible_alias = "clear")]
    Remove(Remove),
}

/// Set limits of a queue; those that are not named stay as they are
///
/// All but the length hold for all priorities of the queue together. What runs already counts.
#[derive(Debug, clap::Args)]
pub(crate) struct Set {
    #[command(flatten)]
    queue: Queue,
    /// How many jobs may wait in the list; 0 lets nothing in. `default` as the queue is for all lists that have
    /// no limit of their own
    #[arg(value_name = "N", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(..=MAX_QUEUE_LIMIT))]
    length: Option<u64>,
    /// How many of its jobs run at once
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(1..=MAX_CONCURRENCY))]
    concurrency: Option<u64>,
    /// How many of its jobs start in a time: 100/min, `10/s burst 20`, `window 100/1m`
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// How many jobs of one key run at once
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(1..=MAX_CONCURRENCY))]
    key_concurrency: Option<u64>,
    /// How many jobs of one key start in a time
    #[arg(long, value_name = "RATE")]
    key_rate: Option<Rate>,
    /// How many bytes the fields of one job may have
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true,
          value_parser = clap::value_parser!(u64).range(1..=MAX_PAYLOAD))]
    payload: Option<u64>,
    /// Keys take turns; `queue weight` gives one more turns than others
    #[arg(long)]
    fair: bool,
}

/// Remove limits of a queue: those that are named, or all
///
/// What was held back by one may start at once. A pause stays (`queue resume` ends it).
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    queue: Queue,
    /// That of how many jobs may wait in the list; the default holds for it then
    #[arg(long)]
    length: bool,
    /// That of how many run at once
    #[arg(long)]
    concurrency: bool,
    /// That of how many start in a time
    #[arg(long)]
    rate: bool,
    /// That of how many of one key run at once
    #[arg(long)]
    key_concurrency: bool,
    /// That of how many of one key start in a time
    #[arg(long)]
    key_rate: bool,
    /// That of how large a job may be
    #[arg(long)]
    payload: bool,
    /// That keys take turns
    #[arg(long)]
    fair: bool,
}

impl LimitCommand {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        match self {
            Self::Show { queue } => show(context, queue.map(|name| Queue { name })).await,
            Self::Set(set) => set.run(context).await,
            Self::Remove(remove) => remove.run(context).await,
        }
    }
}

impl Set {
    async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let some = |set: bool, setting| set.then_some(setting);
        let settings: Vec<_> = [
            self.concurrency.map(|n| QueueSetting::Concurrency(Some(n))),
            self.rate.map(|rate| QueueSetting::Rate(Some(rate))),
            self.key_concurrency
                .map(|n| QueueSetting::KeyConcurrency(Some(n))),
            self.key_rate.map(|rate| QueueSetting::KeyRate(Some(rate))),
            self.payload.map(|n| QueueSetting::Payload(Some(n))),
            some(self.fair, QueueSetting::Fair(true)),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.length.is_none() && settings.is_empty() {
            return Err(UsageError::Nothing.into());
        }
        change(context, &self.queue, self.length.map(Some), &settings).await
    }
}

impl Remove {
    async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let named = [
            (self.concurrency, QueueSetting::Concurrency(None)),
            (self.rate, QueueSetting::Rate(None)),
            (self.key_concurrency, QueueSetting::KeyConcurrency(None)),
            (self.key_rate, QueueSetting::KeyRate(None)),
            (self.payload, QueueSetting::Payload(None)),
            (self.fair, QueueSetting::Fair(false)),
        ];
        let all = !self.length && named.iter().all(|(is, _)| !is);
        // The default is a length alone.
        let settings = self.queue.name != DEFAULT;
        let gone = named
            .into_iter()
            .filter(|(is, _)| *is || (all && settings))
            .map(|(_, setting)| setting);
        let length = (self.length || all).then_some(None);
        change(context, &self.queue, length, &gone.collect::<Vec<_>>()).await
    }
}

/// Changes what is named, and prints what is set then.
async fn change(
    context: &mut Context,
    queue: &Queue,
    length: Option<Option<u64>>,
    settings: &[QueueSetting],
) -> Result<Exit, CommandError> {
    let list = match queue.name.as_str() {
        DEFAULT if !settings.is_empty() => return Err(UsageError::Default.into()),
        DEFAULT => None,
        _ => Some(queue.list(&context.keys())?),
    };
    let client = context.client().await?;
    if let (Some(list), false) = (&list, settings.is_empty()) {
        client.set_queue(list, settings).await?;
    }
    if let Some(length) = length {
        client.limit_queue(list.as_deref(), length).await?;
    }
    let set = client.settings().await?;
    print(context, &line(&set, list.as_deref()))
}

/// What is set for a list, or by default.
fn line<'a>(set: &'a Settings, list: Option<&'a str>) -> Line<'a> {
    let Some(list) = list else {
        return Line::new(DEFAULT, set.limits.default, None);
    };
    let own = set.limits.queues.get(list).copied();
    Line::new(list, own, set.of(list))
}

async fn show(context: &mut Context, queue: Option<Queue>) -> Result<Exit, CommandError> {
    let list = match &queue {
        Some(queue) if queue.name != DEFAULT => Some(queue.list(&context.keys())?),
        _ => None,
    };
    let set = context.client().await?.settings().await?;
    if queue.is_some() {
        return print(context, &line(&set, list.as_deref()));
    }
    let default = set.limits.default.map(|_| line(&set, None));
    let lists = set.limits.queues.keys().chain(set.queues.keys());
    let lists: std::collections::BTreeSet<_> = lists.collect();
    let lines = lists.into_iter().map(|list| line(&set, Some(list)));
    context.out.rows(default.into_iter().chain(lines))?;
    Ok(Exit::DONE)
}
