//! `meshwork flow retry`.

use std::fmt;
use std::str::FromStr;

use meshwork::flow::run::RetryFrom;
use meshwork_model::keys::context::FlowId;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::place::Place;
use super::run::follow;
use super::{live, run};
use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::identity::ContextArgs;
use crate::interrupt::Interrupt;
use crate::out::note;

/// Run an ended flow again from some of its jobs, and show the progress
///
/// These jobs, those that the end of the flow cancelled or skipped, and all that depend on these start again with all
/// their attempts; other results are kept. Of a `foreach`, the items that did not finish run. To retry a flow with a
/// compensated job, start at that job or before.
#[derive(Debug, clap::Args)]
pub(crate) struct Retry {
    /// Number of the flow
    id: FlowId,
    /// Jobs to start at, as `fetch,parse`; `parse[3],parse[7]` are two items of a `foreach`
    #[arg(long, required = true, value_delimiter = ',', value_name = "JOB,…")]
    from: Vec<Start>,
    /// Expand each named `foreach` again, instead of running the items that did not finish
    #[arg(long)]
    all: bool,
    /// Cancel the flow first if it has not ended; no compensation runs
    #[arg(long)]
    force: bool,
    /// Start the retry and return; the workers of the context run it
    #[arg(long)]
    detach: bool,
    #[command(flatten)]
    place: ContextArgs,
}

/// A job, or one of its items.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    job: String,
    item: Option<usize>,
}

impl FromStr for Start {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((job, rest)) = text.split_once('[') else {
            let (job, item) = (text.to_owned(), None);
            return Ok(Self { job, item });
        };
        let item = rest.strip_suffix(']').and_then(|item| item.parse().ok());
        let item = item.ok_or_else(|| format!("`{text}` is no job and no item as `parse[3]`"))?;
        let (job, item) = (job.to_owned(), Some(item));
        Ok(Self { job, item })
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            Some(item) => write!(f, "{}[{item}]", self.job),
            None => f.write_str(&self.job),
        }
    }
}

#[derive(Debug, Serialize)]
struct Retrying {
    id: u32,
    outcome: &'static str,
}

impl Retrying {
    /// Prints that a flow runs again.
    fn print(id: FlowId, context: &mut App) -> Result<Exit, CommandError> {
        let outcome = "retrying";
        match context.out.is_json() {
            true => context.out.json(&Self { id: id.0, outcome })?,
            false => context.out.line(outcome)?,
        }
        Ok(Exit::DONE)
    }
}

impl Retry {
    /// Retries the flow by the API. Runs nothing here.
    async fn by_api(self, context: &mut App) -> Result<Exit, CommandError> {
        let (interrupt, id) = (Interrupt::listen_quietly()?, self.id);
        let of = self.place.params(context, json!({"id": id.0})).await?;
        if self.force {
            let mut params = of.clone();
            params.insert("compensate".to_owned(), false.into());
            let _: IgnoredAny = context.call("flow.cancel", &params).await?;
            live::watch_by_api(context, id, &of, &interrupt).await?;
        }
        let from: Vec<_> = self.from.iter().map(ToString::to_string).collect();
        let mut params = of.clone();
        params.insert("from_jobs".to_owned(), from.into());
        params.insert("all".to_owned(), self.all.into());
        let _: IgnoredAny = context.call("flow.retry", &params).await?;
        if self.detach {
            return Retrying::print(id, context);
        }
        note(format_args!("flow {id} runs again"));
        let view = live::watch_by_api(context, id, &of, &interrupt).await?;
        run::print(&view, context)
    }

    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        if context.remote.is_some() {
            return self.by_api(context).await;
        }
        let interrupt = Interrupt::listen_quietly()?;
        let place = match self.detach {
            true => Place::open(&self.place, context).await?,
            false => interrupt.or(Place::to_rerun(&self.place, context)).await?,
        };
        let (flows, id) = (&place.flows, self.id);
        let plan = flows.plan(id).await?;
        if self.force && place.session.cancel(id, false).await? {
            let stepper = place.stepper()?;
            let ended = async { flows.wait(id, |_| {}).await.map_err(CommandError::from) };
            let ended = interrupt.or(ended).await;
            stepper.stop().await;
            ended?;
        }
        let start = |start: Start| match start.item {
            Some(item) => RetryFrom::Item(start.job, item),
            None if self.all => RetryFrom::All(start.job),
            None => RetryFrom::Job(start.job),
        };
        let from: Vec<RetryFrom> = self.from.into_iter().map(start).collect();
        place.session.retry(id, &from).await?;
        if !self.detach {
            note(format_args!("flow {id} runs again"));
            return follow(&place, (id, &plan), None, &interrupt, context).await;
        }
        Retrying::print(id, context)
    }
}
