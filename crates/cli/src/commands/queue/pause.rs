//! `meshwork queue pause`, `resume` and `drain`.

use std::collections::BTreeSet;
use std::time::Duration;

use meshwork::{Client, QueueDepth};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::number::counted;
use serde::Serialize;

use super::Queue;
use super::line::{Line, print};
use crate::app::App;
use crate::args::parsers;
use crate::confirm::confirm;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::known_queue::{need, refuse_unknown};
use crate::out::note;

/// One queue or all.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Which {
    /// Name of the queue, as `queue list` shows it, or its key
    #[arg(value_name = "QUEUE", required_unless_present = "all")]
    pub(super) queue: Option<String>,
    /// All queues that have jobs or workers
    #[arg(long, conflicts_with = "queue")]
    pub(super) all: bool,
    /// Do not ask for confirmation of --all
    #[arg(short, long, requires = "all")]
    yes: bool,
}

/// Pause a queue: no job of it starts until it is resumed
///
/// Running jobs continue, and new jobs are accepted. A pause applies to all priorities of the queue.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    pub(super) which: Which,
    /// Pause the queue although it does not exist yet
    #[arg(long)]
    pub(super) create: bool,
}

/// End a pause, and a drain
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(super) which: Which,
}

/// Refuse new jobs, and wait until the queue has run its jobs
///
/// New jobs are refused until `queue resume`. The command waits for retries, but not for delayed jobs and jobs with
/// prerequisites: they remain, and run later.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Drain {
    #[command(flatten)]
    pub(super) queue: Queue,
    /// Drain the queue although it does not exist yet
    #[arg(long)]
    pub(super) create: bool,
    /// Do not wait until the queue is empty
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Longest wait until the queue is empty
    #[arg(long, value_name = "DURATION", default_value = "3600", value_parser = parsers::wait,
          allow_hyphen_values = true, conflicts_with = "no_wait")]
    pub(super) timeout: Duration,
}

#[derive(Debug, Serialize)]
struct Depth<'a> {
    queue: &'a str,
    waiting: usize,
    set_aside: usize,
    running: usize,
    retrying: usize,
    delayed: usize,
}

impl Which {
    /// Returns the queues: the named one, or those that `queue list` shows, after a confirmation.
    async fn lists(
        &self,
        verb: &str,
        context: &App,
        client: &Client,
    ) -> Result<Vec<String>, CommandError> {
        if let Some(name) = &self.queue {
            return Ok(vec![context.keys().parse_work_queue(name)?]);
        }
        let queues = client.queues().await?;
        let queues = queues.iter().filter(|info| !info.legacy);
        let queues = queues.map(|info| JobKeys::without_priority(&info.queue).to_owned());
        let queues: BTreeSet<_> = queues.collect();
        self.confirm(verb, queues.len())?;
        Ok(queues.into_iter().collect())
    }

    /// Returns without an error if the user confirms a change of all queues, of which there are this many.
    pub(super) fn confirm(&self, verb: &str, count: usize) -> Result<(), CommandError> {
        match count {
            _ if self.queue.is_some() => Ok(()),
            0 => {
                note("there is no queue");
                Ok(())
            }
            _ => confirm(&format!("to {verb} {}", counted(count, "queue")), self.yes),
        }
    }
}

impl Pause {
    pub(super) fn queue(&self) -> Option<&str> {
        self.which.queue.as_deref()
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let mut exit = Exit::DONE;
        for list in self.which.lists("pause", context, &client).await? {
            let create = self.create || self.which.all;
            refuse_unknown(context, &client, &list, create).await?;
            context.record_in_audit("pause queue", &list).await?;
            client.pause(&list).await?;
            exit = exit.or(tell(context, &client, &list).await?);
        }
        Ok(exit)
    }
}

impl Resume {
    pub(super) fn queue(&self) -> Option<&str> {
        self.which.queue.as_deref()
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let before = client.settings().await?;
        let mut exit = Exit::DONE;
        for list in self.which.lists("resume", context, &client).await? {
            need(context, &client, &list).await?;
            let set = before.of(&list);
            let (paused, draining) = set.map_or((false, false), |set| (set.paused, set.draining));
            context.record_in_audit("resume queue", &list).await?;
            client.resume(&list).await?;
            let queue = context.queue_name(JobKeys::without_priority(&list));
            note(match (paused, draining) {
                (true, true) => format!("resumed {queue}: its pause and its drain have ended"),
                (true, false) => format!("resumed {queue}: its pause has ended"),
                (false, true) => {
                    format!("resumed {queue}: its drain has ended, and new jobs are accepted")
                }
                (false, false) => {
                    format!("{queue} was neither paused nor draining; nothing was changed")
                }
            });
            exit = exit.or(tell(context, &client, &list).await?);
        }
        Ok(exit)
    }
}

impl Drain {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let list = self.queue.list(&context.keys())?;
        let name = context.queue_name(&list);
        let client = context.client().await?;
        refuse_unknown(context, &client, &list, self.create).await?;
        context.record_in_audit("drain queue", &list).await?;
        let depth = if self.no_wait {
            client.start_drain(&list).await?;
            client.depth(&list).await?
        } else {
            if client
                .settings()
                .await?
                .of(&list)
                .is_some_and(|set| set.paused)
            {
                note(paused(&name));
            }
            let mut last = None;
            let progress = |depth: &QueueDepth| {
                if last.replace(*depth) != Some(*depth) {
                    note(words(depth));
                }
            };
            let how = goes_on(&name);
            let drained = client.drain(&list, self.timeout, progress);
            Interrupt::listen_quietly()?.or_detach(drained, how).await?
        };
        tell_depth(context, &list, &depth)
    }
}

/// Prints the depth of a queue that drains.
pub(super) fn tell_depth(
    context: &mut App,
    list: &str,
    depth: &QueueDepth,
) -> Result<Exit, CommandError> {
    let name = context.queue_name(list);
    if context.out.is_json() {
        context.out.json(&Depth {
            queue: list,
            waiting: depth.waiting,
            set_aside: depth.set_aside,
            running: depth.running,
            retrying: depth.retrying,
            delayed: depth.delayed,
        })?;
    } else if depth.is_empty() {
        let later = match depth.delayed {
            0 => String::new(),
            n => format!(", but for {n} that wait for their time"),
        };
        context.out.line(format_args!("{name} is empty{later}"))?;
    } else {
        context
            .out
            .line(format_args!("{name} takes no new jobs; {}", words(depth)))?;
    }
    Ok(Exit::DONE)
}

/// Says why a paused queue does not become empty.
pub(super) fn paused(name: &str) -> String {
    format!(
        "{name} is paused: its waiting jobs start after `queue resume`, which also ends the drain"
    )
}

/// Says how to go on after an interrupted wait.
pub(super) fn goes_on(name: &str) -> String {
    format!(
        "{name} takes no new jobs: `meshwork queue drain {name}` waits again, `meshwork queue resume {name}` ends the drain"
    )
}

pub(super) fn words(depth: &QueueDepth) -> String {
    let QueueDepth {
        waiting,
        set_aside,
        running,
        retrying,
        delayed,
    } = depth;
    format!(
        "{waiting} wait, {set_aside} are set aside, {running} run, {retrying} are to run again, {delayed} wait \
         for their time"
    )
}

/// Prints the settings of the queue.
async fn tell(context: &mut App, client: &Client, list: &str) -> Result<Exit, CommandError> {
    let set = client.settings().await?;
    let list = JobKeys::without_priority(list);
    print(context, &Line::of(context, list, &set))
}
