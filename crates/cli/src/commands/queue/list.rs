//! `meshwork queue list`.

use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::out::{Column, Table};

/// List the queues that hold jobs or have listeners
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

#[derive(Debug, Serialize)]
struct Line<'a> {
    queue: &'a str,
    waiting: usize,
    running: usize,
    listeners: usize,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let queues = context.client().await?.queues().await?;
        if context.out.is_json() {
            for info in &queues {
                context.out.json(&Line {
                    queue: &info.queue,
                    waiting: info.waiting,
                    running: info.running,
                    listeners: info.listeners,
                })?;
            }
            return Ok(Exit::DONE);
        }
        let numbers = ["waiting", "running", "listeners"].map(Column::number);
        let mut table = Table::new(std::iter::once(Column::text("queue")).chain(numbers));
        for info in queues {
            let numbers = [info.waiting, info.running, info.listeners].map(|n| n.to_string());
            table.row(std::iter::once(info.queue).chain(numbers));
        }
        context.out.table(table)?;
        Ok(Exit::DONE)
    }
}
