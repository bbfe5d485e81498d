//! `meshwork schedule list`.

use std::collections::BTreeMap;

use meshwork::Client;
use meshwork::view::ScheduleView;
use meshwork_model::keys::context::ContextId;
use meshwork_model::name::ScheduleName;
use serde::Serialize;
use serde_json::Map;

use super::FlowScope;
use super::view::{next, state};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Column, Row};

/// List all schedules by name
#[derive(Debug, clap::Args)]
pub(crate) struct List {}

impl List {
    pub(crate) async fn run(
        self,
        scope: &FlowScope,
        context: &mut App,
    ) -> Result<Exit, CommandError> {
        if context.remote.is_some() {
            let mut all = BTreeMap::new();
            let pages = context.pages("schedule.list", Map::new(), ("schedules", usize::MAX));
            let (schedules, _): (Vec<ScheduleView>, _) = pages.await?;
            let listed = schedules.into_iter();
            let listed = listed.map(|view| Listed {
                context: None,
                view,
            });
            all.extend(listed.map(|it| (it.view.name.clone(), it)));
            context.out.rows(all.into_values())?;
            return Ok(Exit::DONE);
        }
        let mut all = BTreeMap::new();
        let session = scope.session(context).await?;
        if scope.context.is_none() {
            add_all(&context.client().await?, None, &mut all).await?;
        }
        if let Some(session) = session {
            let number = session.client().context();
            add_all(&session.schedules(None).await?, Some(number), &mut all).await?;
        }
        context.out.rows(all.into_values())?;
        Ok(Exit::DONE)
    }
}

/// Schedules by context and name: a page may repeat a schedule.
type All = BTreeMap<(Option<ContextId>, ScheduleName), Listed>;

async fn add_all(
    client: &Client,
    context: Option<ContextId>,
    all: &mut All,
) -> Result<(), CommandError> {
    let mut from = 0;
    loop {
        let page = client.schedules(from).await?;
        all.extend(page.schedules.iter().map(|there| {
            let view = ScheduleView::from(there);
            let number = context.map(ContextId::get);
            let context_and_name = (context, there.name.clone());
            (
                context_and_name,
                Listed {
                    view,
                    context: number,
                },
            )
        }));
        from = page.next;
        if from == 0 {
            return Ok(());
        }
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    #[serde(flatten)]
    view: ScheduleView,
    /// Context of a schedule of flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u32>,
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
            next(view).cloned().unwrap_or_else(|| "-".to_owned()),
            known(&view.script_type),
            state(view).to_owned(),
        ]
    }
}
