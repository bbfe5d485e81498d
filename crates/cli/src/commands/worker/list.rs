//! `meshwork worker list`.

use meshwork::WorkerInfo;

use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Table};

/// List the workers that say that they are there
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(super) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let workers = context.client().await?.workers().await?;
        if context.out.is_json() {
            for worker in &workers {
                context.out.json(worker)?;
            }
            return Ok(Exit::DONE);
        }
        let texts = ["type", "group", "instance", "host"].map(Column::text);
        let numbers = ["pid", "jobs", "slots"].map(Column::number);
        let since = [Column::text("since"), Column::text("version")];
        let mut table = Table::new(texts.into_iter().chain(numbers).chain(since));
        for worker in workers {
            table.row(cells(worker));
        }
        context.out.table(table)?;
        Ok(Exit::DONE)
    }
}

/// What a worker does not say is left empty.
fn cells(worker: WorkerInfo) -> [String; 9] {
    let number = |number: Option<usize>| number.map(|n| n.to_string()).unwrap_or_default();
    // A name that was made up says nothing to people.
    let instance = Some(worker.instance).filter(|_| worker.named);
    [
        worker.script_type,
        worker.group,
        instance.unwrap_or_default(),
        worker.hostname.unwrap_or_default(),
        worker.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        number(worker.in_flight),
        number(worker.slots),
        worker.started_at.unwrap_or_default(),
        worker.version.unwrap_or_default(),
    ]
}
