//! `meshwork message list`.

use meshwork::context::{MessageView, Outcome};
use meshwork_model::number::counted;
use meshwork_model::time;
use serde::Serialize;
use serde_json::Map;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::out::{Column, Row, note};

/// List the messages of a context, sent and received, the latest first
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Greatest number of rows, 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 100, allow_hyphen_values = true,
          value_parser = parsers::whole::<u32>(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    args: ContextArgs,
}

impl List {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let Some(of) = self.args.for_calls(context).await? else {
            return print(context, &[]);
        };
        let params = Map::from_iter([("context".to_owned(), of.get().into())]);
        let limit = self.limit as usize;
        let pages = context.pages("message.list", params, ("messages", limit));
        let (views, rest) = pages.await?;
        if rest.is_some() {
            note(format_args!("the latest {limit}; there are more (--limit)"));
        }
        print(context, &views)
    }
}

/// Prints messages, a line each.
pub(super) fn print(context: &mut App, views: &[MessageView]) -> Result<Exit, CommandError> {
    context.out.rows(views.iter().map(Listed::of))?;
    Ok(Exit::DONE)
}

/// A message with its outcome.
#[derive(Debug, Serialize)]
pub(super) struct Listed<'a> {
    #[serde(flatten)]
    view: &'a MessageView,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
}

impl<'a> Listed<'a> {
    pub(super) fn of(view: &'a MessageView) -> Self {
        let outcome = view.outcome();
        Self { view, outcome }
    }
}

/// Returns the outcome of a message, with the code of a refusal; nothing for an open one.
pub(super) fn outcome(view: &MessageView) -> String {
    match (view.outcome(), &view.reason) {
        (Some(outcome @ Outcome::Refused), Some(code)) => format!("{} ({code})", outcome.as_str()),
        (Some(outcome), _) => outcome.as_str().to_owned(),
        (None, _) => String::new(),
    }
}

impl Row for Listed<'_> {
    fn columns() -> Vec<Column> {
        let names = [
            "message",
            "type",
            "status",
            "outcome",
            "from or to",
            "created",
            "text",
        ];
        Column::named(names, &[])
    }

    fn cells(&self) -> Vec<String> {
        let MessageView {
            message, origin, ..
        } = self.view;
        let other = match (origin, message.target_context) {
            (Some(origin), _) => format!("from {}", origin.context),
            (None, Some(target)) => format!("to {target}"),
            (None, None) => String::new(),
        };
        let text = match message.job.len() {
            0 => message.message.clone(),
            many => counted(many, "job"),
        };
        vec![
            message.key().numbers(),
            message.message_type.to_string(),
            message.status.to_string(),
            outcome(self.view),
            other,
            time::iso(self.view.created_ms),
            text,
        ]
    }
}
