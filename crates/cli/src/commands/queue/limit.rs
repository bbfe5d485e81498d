//! `meshwork queue limit`.

use std::collections::BTreeSet;

use meshwork_broker::MAX_QUEUE_LIMIT;
use meshwork_model::queue::{MAX_CONCURRENCY, MAX_PAYLOAD, QueueSetting, Rate};
use meshwork_model::sandbox::Limit;

use super::line::{DEFAULT, Line, print};
use super::{Queue, UsageError};
use crate::app::App;
use crate::args::parsers;
use crate::args::sandbox::JobSandboxArgs;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::known_queue::{need, refuse_unknown};

/// Show, set and remove limits of waiting jobs, concurrent jobs, rates and sizes
#[derive(Debug, Clone, clap::Subcommand)]
pub(crate) enum LimitCommand {
    /// Show all settings, or those of one queue
    Show {
        /// Name of the queue, as `queue list` shows it, or `default`
        queue: Option<String>,
    },
    Set(Box<Set>),
    #[command(visible_alias = "clear")]
    Remove(Remove),
}

/// Set limits of a queue; limits that are not named do not change
///
/// All limits but the length apply to all priorities of the queue together. Running jobs count at once.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Set {
    #[command(flatten)]
    pub(super) queue: Queue,
    /// Greatest number of waiting jobs in the list; 0 refuses all. The queue name `default` sets the limit of all lists
    /// without their own
    #[arg(value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u64>(0..=MAX_QUEUE_LIMIT))]
    pub(super) length: Option<u64>,
    /// Greatest number of concurrent jobs
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u64>(1..=MAX_CONCURRENCY))]
    concurrency: Option<u64>,
    /// Greatest rate of starts: 100/min, `10/s burst 20`, `window 100/1m`
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Greatest number of concurrent jobs of one key
    #[arg(long, value_name = "N", allow_hyphen_values = true,
          value_parser = parsers::whole::<u64>(1..=MAX_CONCURRENCY))]
    key_concurrency: Option<u64>,
    /// Greatest rate of starts of one key
    #[arg(long, value_name = "RATE")]
    key_rate: Option<Rate>,
    /// Greatest size of a job's fields, in bytes
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true,
          value_parser = parsers::whole::<u64>(1..=MAX_PAYLOAD))]
    payload: Option<u64>,
    /// Serve keys in turn; `queue weight` gives a key a larger share
    #[arg(long)]
    fair: bool,
    #[command(flatten)]
    sandbox: JobSandboxArgs,
    /// Set the limits although the queue does not exist yet
    #[arg(long)]
    pub(super) create: bool,
    /// With --spread: keep new jobs in one part, so that the limits hold exactly
    #[arg(long, requires = "spread")]
    pub(super) exact: bool,
}

/// Remove limits of a queue: the named ones, or all
///
/// Jobs that waited for a removed limit may start at once. A pause remains (`queue resume` ends it).
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Remove {
    #[command(flatten)]
    pub(super) queue: Queue,
    /// Remove the limit of waiting jobs; the default applies then
    #[arg(long)]
    length: bool,
    /// Remove the limit of concurrent jobs
    #[arg(long)]
    concurrency: bool,
    /// Remove the limit of the rate
    #[arg(long)]
    rate: bool,
    /// Remove the limit of concurrent jobs of one key
    #[arg(long)]
    key_concurrency: bool,
    /// Remove the limit of the rate of one key
    #[arg(long)]
    key_rate: bool,
    /// Remove the limit of the size
    #[arg(long)]
    payload: bool,
    /// Remove the fair order of keys
    #[arg(long)]
    fair: bool,
    /// Remove the profile of the sandbox, and all limits of runs
    #[arg(long)]
    sandbox: bool,
}

impl LimitCommand {
    /// Returns the name of its queue.
    pub(super) fn queue(&self) -> Option<&str> {
        match self {
            Self::Show { queue } => queue.as_deref(),
            Self::Set(set) => Some(set.queue()),
            Self::Remove(remove) => Some(&remove.queue.name),
        }
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        match self {
            Self::Show { queue } => show(context, queue.map(|name| Queue { name })).await,
            Self::Set(set) => set.run(context).await,
            Self::Remove(remove) => remove.run(context).await,
        }
    }
}

impl Set {
    /// Returns the name of its queue.
    pub(super) fn queue(&self) -> &str {
        &self.queue.name
    }

    /// Returns the settings, without the length.
    pub(super) fn settings(&self) -> Vec<QueueSetting> {
        let named = [
            self.concurrency.map(|n| QueueSetting::Concurrency(Some(n))),
            self.rate.map(|rate| QueueSetting::Rate(Some(rate))),
            self.key_concurrency
                .map(|n| QueueSetting::KeyConcurrency(Some(n))),
            self.key_rate.map(|rate| QueueSetting::KeyRate(Some(rate))),
            self.payload.map(|n| QueueSetting::Payload(Some(n))),
            self.fair.then_some(QueueSetting::Fair(true)),
        ];
        let named = named.into_iter().flatten();
        named.chain(self.sandbox.queue_settings()).collect()
    }

    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let settings = self.settings();
        if self.length.is_none() && settings.is_empty() {
            return Err(UsageError::Nothing.into());
        }
        if self.queue.name != DEFAULT {
            let list = self.queue.list(&context.keys())?;
            let client = context.client().await?;
            refuse_unknown(context, &client, &list, self.create).await?;
        }
        change(context, &self.queue, self.length.map(Some), &settings).await
    }
}

impl Remove {
    /// Returns the length and the settings that are removed.
    pub(super) fn settings(&self) -> (Option<Option<u64>>, Vec<QueueSetting>) {
        let named = [
            (self.concurrency, QueueSetting::Concurrency(None)),
            (self.rate, QueueSetting::Rate(None)),
            (self.key_concurrency, QueueSetting::KeyConcurrency(None)),
            (self.key_rate, QueueSetting::KeyRate(None)),
            (self.payload, QueueSetting::Payload(None)),
            (self.fair, QueueSetting::Fair(false)),
            (self.sandbox, QueueSetting::Sandbox(None)),
        ];
        let run_limits =
            Limit::ALL.map(|limit| (self.sandbox, QueueSetting::RunLimit(limit, None)));
        let named: Vec<_> = named.into_iter().chain(run_limits).collect();
        let all = !self.length && named.iter().all(|(is, _)| !is);
        // The default is a length only.
        let settings = self.queue.name != DEFAULT;
        let gone = named
            .into_iter()
            .filter(|(is, _)| *is || (all && settings))
            .map(|(_, setting)| setting);
        ((self.length || all).then_some(None), gone.collect())
    }

    async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if self.queue.name != DEFAULT {
            let list = self.queue.list(&context.keys())?;
            need(context, &context.client().await?, &list).await?;
        }
        let (length, gone) = self.settings();
        change(context, &self.queue, length, &gone).await
    }
}

/// Changes the settings, and prints the new ones.
async fn change(
    context: &mut App,
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
    let name = list.as_deref().unwrap_or(DEFAULT);
    context.record_in_audit("limit queue", name).await?;
    if let (Some(list), false) = (&list, settings.is_empty()) {
        client.update_queue(list, settings).await?;
    }
    if let Some(length) = length {
        client.set_max_length(list.as_deref(), length).await?;
    }
    let set = client.settings().await?;
    print(context, &Line::of(context, name, &set))
}

async fn show(context: &mut App, queue: Option<Queue>) -> Result<Exit, CommandError> {
    let list = match &queue {
        Some(queue) if queue.name != DEFAULT => Some(queue.list(&context.keys())?),
        _ => None,
    };
    let client = context.client().await?;
    if let Some(list) = &list {
        need(context, &client, list).await?;
    }
    let set = client.settings().await?;
    if queue.is_some() {
        let name = list.as_deref().unwrap_or(DEFAULT);
        return print(context, &Line::of(context, name, &set));
    }
    let default = set.limits.default.map(|_| DEFAULT);
    let lists = set.limits.queues.keys().chain(set.queues.keys());
    let lists: BTreeSet<_> = lists.map(String::as_str).collect();
    let lines = default.into_iter().chain(lists);
    let lines: Vec<_> = lines.map(|list| Line::of(context, list, &set)).collect();
    context.out.rows(lines)?;
    Ok(Exit::DONE)
}
