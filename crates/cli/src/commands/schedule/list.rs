//! `meshwork schedule list`.

use super::view::View;
use crate::context::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Table};

/// List all schedules by name
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        // By name: a page may bring a schedule again.
        let (mut all, mut from) = (std::collections::BTreeMap::new(), 0);
        loop {
            let page = client.schedules(from).await?;
            let views = page.schedules.iter().map(|there| {
                let local = there.schedule.as_ref().ok().zip(there.next);
                let local = local.map(|(schedule, next)| schedule.timing.zone.show(next));
                (there.name.clone(), (View::from(there), local))
            });
            all.extend(views);
            from = page.next;
            if from == 0 {
                break;
            }
        }
        let names = ["name", "rhythm", "zone", "next", "type", ""].map(Column::text);
        let mut table = Table::new(names);
        for (name, (view, next)) in all {
            if context.out.is_json() {
                context.out.json(&view)?;
                continue;
            }
            let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
            table.row([
                name.to_string(),
                known(&view.rhythm),
                known(&view.zone),
                next.unwrap_or_else(|| "-".to_owned()),
                known(&view.script_type),
                view.state().to_owned(),
            ]);
        }
        if !context.out.is_json() {
            context.out.table(table)?;
        }
        Ok(Exit::DONE)
    }
}
