//! `meshwork bananas queues`.

use serde::Serialize;

use super::Side;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

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
        let lists = depths.lists.iter().map(|depth| Count {
            list: &depth.list,
            route: depth.route.to_string(),
            jobs: depth.waiting,
        });
        let totals = [
            ("scheduled", depths.scheduled),
            ("running", depths.processing),
            ("running on Meshwork", depths.ours),
            ("dead letters", depths.dead),
        ];
        let totals = totals.map(|(list, jobs)| Count {
            list,
            route: String::new(),
            jobs,
        });
        context.out.rows(lists.chain(totals))?;
        Ok(Exit::DONE)
    }
}

/// Row of the list; JSON has all totals in one object instead.
#[derive(Debug, Serialize)]
struct Count<'a> {
    list: &'a str,
    route: String,
    jobs: u64,
}

impl Row for Count<'_> {
    fn columns() -> Vec<Column> {
        Column::named(["list", "route", "jobs"], &["jobs"])
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.list.to_owned(),
            self.route.clone(),
            self.jobs.to_string(),
        ]
    }
}
