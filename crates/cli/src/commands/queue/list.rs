//! `meshwork queue list`.

use meshwork::view::QueueView;
use meshwork_ops::queue;
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
    #[serde(flatten)]
    queue: &'a QueueView,
    /// Printed name of the list.
    #[serde(skip)]
    name: String,
    /// The settings, for people.
    #[serde(skip)]
    set: String,
}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        let (found, broker) = (client.queues().await?, client.broker());
        let settings = broker.or_nothing(broker.settings().await);
        let settings = settings.map_err(meshwork::Error::from)?;
        let queues = queue::listed(found.iter().map(QueueView::from).collect(), &settings);
        print(context, &queues)
    }
}

/// Prints queues with their settings.
pub(super) fn print(context: &mut App, queues: &[QueueView]) -> Result<Exit, CommandError> {
    let words = |queue: &QueueView| {
        let set = match queue.legacy {
            true => "legacy".to_owned(),
            false => Set::new(queue.settings.clone()).words().to_owned(),
        };
        (context.queue_name(&queue.queue), set)
    };
    let words: Vec<_> = queues.iter().map(words).collect();
    let lines = queues.iter().zip(words);
    let lines = lines.map(|(queue, (name, set))| Line { queue, name, set });
    context.out.rows(lines)?;
    Ok(Exit::DONE)
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
        let of = self.queue;
        let numbers = [of.waiting, of.running, of.set_aside, of.listeners];
        let [waiting, running, aside, listeners] = numbers.map(|n| n.to_string());
        let (queue, limit) = (self.name.clone(), number(of.limit));
        vec![
            queue,
            waiting,
            running,
            aside,
            listeners,
            limit,
            self.set.clone(),
        ]
    }
}
