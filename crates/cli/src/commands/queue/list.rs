//! `meshwork queue list`.

use meshwork::QueueInfo;
use serde::Serialize;

use super::line::{Set, number};
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Table};

/// List the queues that hold jobs or have listeners
///
/// The lists of the priorities high (…:prio:0) and low (…:prio:2) are shown where they hold something or
/// have a limit of their own; old lists, which clients of earlier systems push to, are marked `legacy`. Set
/// aside are jobs that wait for the turn of their key. What is set holds for all priorities of a queue.
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

#[derive(Debug, Serialize)]
struct Line<'a> {
    queue: &'a str,
    waiting: usize,
    running: usize,
    listeners: usize,
    set_aside: usize,
    limit: Option<u64>,
    legacy: bool,
    #[serde(flatten)]
    set: Set<'a>,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let (mut queues, limits) = (client.queues().await?, client.limits().await?);
        queues.retain(|info| !is_idle_priority(info) || limits.queues.contains_key(&info.queue));
        if context.out.is_json() {
            for info in &queues {
                context.out.json(&Line {
                    queue: &info.queue,
                    waiting: info.waiting,
                    running: info.running,
                    listeners: info.listeners,
                    set_aside: info.set_aside,
                    limit: info.limit,
                    legacy: info.legacy,
                    set: Set::new(&info.queue, info.settings.as_ref()),
                })?;
            }
            return Ok(Exit::DONE);
        }
        let numbers = ["waiting", "running", "aside", "listeners", "limit"].map(Column::number);
        let columns = std::iter::once(Column::text("queue")).chain(numbers);
        let mut table = Table::new(columns.chain([Column::text("")]));
        for info in queues {
            let limit = number(info.limit);
            let [waiting, running, aside, listeners] =
                [info.waiting, info.running, info.set_aside, info.listeners].map(|n| n.to_string());
            let set = Set::new(&info.queue, info.settings.as_ref());
            let mark = if info.legacy { "legacy" } else { set.words() }.to_owned();
            table.row([info.queue, waiting, running, aside, listeners, limit, mark]);
        }
        context.out.table(table)?;
        Ok(Exit::DONE)
    }
}

/// Whether it is the list of a priority in which there is nothing: every worker listens to six of them.
fn is_idle_priority(info: &QueueInfo) -> bool {
    info.queue.contains(":prio:") && info.waiting + info.running + info.set_aside == 0
}
