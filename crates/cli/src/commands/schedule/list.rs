//! `meshwork schedule list`.

use serde::Serialize;

use super::view::View;
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// List all schedules by name
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.client().await?;
        // By name: a page may repeat a schedule.
        let (mut all, mut from) = (std::collections::BTreeMap::new(), 0);
        loop {
            let page = client.schedules(from).await?;
            let views = page.schedules.iter().map(|there| {
                let local = there.schedule.as_ref().ok().zip(there.next);
                let local = local.map(|(schedule, next)| schedule.timing.zone.show(next));
                let view = View::from(there);
                (there.name.clone(), Listed { view, next: local })
            });
            all.extend(views);
            from = page.next;
            if from == 0 {
                break;
            }
        }
        context.out.rows(all.into_values())?;
        Ok(Exit::DONE)
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    view: View,
    /// In the time zone of the schedule.
    #[serde(skip)]
    next: Option<String>,
}

impl Row for Listed {
    fn columns() -> Vec<Column> {
        Column::named(["name", "rhythm", "zone", "next", "type", ""], &[])
    }

    fn cells(&self) -> Vec<String> {
        let view = &self.view;
        let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        vec![
            view.name.clone(),
            known(&view.rhythm),
            known(&view.zone),
            self.next.clone().unwrap_or_else(|| "-".to_owned()),
            known(&view.script_type),
            view.state().to_owned(),
        ]
    }
}
