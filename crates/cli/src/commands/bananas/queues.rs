//! `meshwork bananas queues`.

use serde::Serialize;

use super::Side;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Table};

/// Show how many jobs wait, run and failed
///
/// Running jobs include those of foreign workers. A killed worker of Bananas leaves its jobs among them for ever
/// (`worker --protocol bananas --rescue-orphans-after` requeues them).
#[derive(Debug, clap::Args)]
pub(crate) struct Queues {
    #[command(flatten)]
    side: Side,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Waiting {
        list: &'a str,
        route: &'a str,
        priority: &'a str,
        waiting: u64,
    },
    All {
        scheduled: u64,
        processing: u64,
        ours: u64,
        dead: u64,
    },
}

impl Queues {
    pub(super) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let depths = self.side.client(context).await?.depths().await?;
        if context.out.is_json() {
            for depth in &depths.lists {
                context.out.json(&Line::Waiting {
                    list: &depth.list,
                    route: depth.route.as_str(),
                    priority: depth.priority.as_str(),
                    waiting: depth.waiting,
                })?;
            }
            context.out.json(&Line::All {
                scheduled: depths.scheduled,
                processing: depths.processing,
                ours: depths.ours,
                dead: depths.dead,
            })?;
            return Ok(Exit::DONE);
        }
        let mut table = Table::new([
            Column::text("list"),
            Column::text("route"),
            Column::number("jobs"),
        ]);
        for depth in depths.lists {
            let route = depth.route.to_string();
            table.row([depth.list, route, depth.waiting.to_string()]);
        }
        for (name, jobs) in [
            ("scheduled", depths.scheduled),
            ("running", depths.processing),
            ("running on Meshwork", depths.ours),
            ("dead letters", depths.dead),
        ] {
            table.row([name.to_owned(), String::new(), jobs.to_string()]);
        }
        context.out.table(table)?;
        Ok(Exit::DONE)
    }
}
