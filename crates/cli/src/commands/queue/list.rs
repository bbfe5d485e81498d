//! `meshwork queue list`.

use meshwork::QueueInfo;
use serde::Serialize;

use super::line::{Set, number};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// List the queues that have jobs or workers
///
/// The lists of the priorities high (…:prio:0) and low (…:prio:2) are shown if they have jobs or a limit of their own;
/// old lists, which clients of earlier systems use, are marked `legacy`. Set aside are jobs that wait for a slot of
/// their key. Settings apply to all priorities of a queue.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct List {}

#[derive(Debug, Serialize)]
struct Line<'a> {
    queue: &'a str,
    /// Printed name of the list.
    #[serde(skip)]
    name: String,
    waiting: usize,
    running: usize,
    listeners: usize,
    set_aside: usize,
    limit: Option<u64>,
    legacy: bool,
    #[serde(flatten)]
    set: Set,
}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let (mut queues, limits) = (client.queues().await?, client.limits().await?);
        queues.retain(|info| !is_idle_priority(info) || limits.queues.contains_key(&info.queue));
        let lines = queues
            .iter()
            .map(|info| Line::new(info, context.queue_name(&info.queue)));
        let lines: Vec<_> = lines.collect();
        context.out.rows(lines)?;
        Ok(Exit::DONE)
    }
}

impl<'a> Line<'a> {
    fn new(info: &'a QueueInfo, name: String) -> Self {
        Self {
            queue: &info.queue,
            name,
            waiting: info.waiting,
            running: info.running,
            listeners: info.listeners,
            set_aside: info.set_aside,
            limit: info.limit,
            legacy: info.legacy,
            set: Set::new(&info.queue, info.settings.as_ref()),
        }
    }
}

impl Row for Line<'_> {
    fn columns() -> Vec<Column> {
        let names = [
            "queue",
            "waiting",
            "running",
            "aside",
            "listeners",
            "limit",
            "",
        ];
        Column::named(
            names,
            &["waiting", "running", "aside", "listeners", "limit"],
        )
    }

    fn optional() -> &'static [&'static str] {
        &["aside", "limit"]
    }

    fn cells(&self) -> Vec<String> {
        let numbers = [self.waiting, self.running, self.set_aside, self.listeners];
        let [waiting, running, aside, listeners] = numbers.map(|n| n.to_string());
        let mark = if self.legacy {
            "legacy"
        } else {
            self.set.words()
        }
        .to_owned();
        let (queue, limit) = (self.name.clone(), number(self.limit));
        vec![queue, waiting, running, aside, listeners, limit, mark]
    }
}

/// Returns true for an empty list of a priority without a limit: every worker listens to six of them.
fn is_idle_priority(info: &QueueInfo) -> bool {
    info.queue.contains(":prio:") && info.waiting + info.running + info.set_aside == 0
}
