//! `meshwork batch status`.

use std::time::Duration;

use meshwork::view::{BatchView, JobView, state_of};
use meshwork::{BatchState, BatchStatus, Client, Error};
use meshwork_model::batch::Callback;
use meshwork_model::job::limits::MAX_TIMEOUT;
use meshwork_model::name::{BatchId, JobId};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::job_view;
use crate::out::{Out, OutError, Progress, with_keys};

/// Show the state of a batch
#[derive(Debug, clap::Args)]
pub(crate) struct StatusOf {
    /// The batch's id
    #[arg(value_name = "BATCH")]
    batch: BatchId,
    /// Show the progress until the batch has ended, or until Ctrl-C or q; exits with 1 if it has not succeeded
    #[arg(long)]
    watch: bool,
    /// Longest time to watch, in seconds [default: 7 days]
    #[arg(long, value_name = "DURATION", value_parser = parsers::wait, allow_hyphen_values = true,
          requires = "watch")]
    timeout: Option<Duration>,
}

impl StatusOf {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let client = context.near().await?;
        let status = match (&client, self.watch) {
            (Some(client), true) => self.watched(client).await?,
            (Some(client), false) => {
                let batch = client.batch_of(self.batch.clone());
                BatchView::from(&batch.status().await?)
            }
            (None, true) => Box::pin(self.watched_by_api(context)).await?,
            (None, false) => self.read(context).await?,
        };
        if context.out.is_json() {
            context.out.json(&status)?;
        } else {
            let callbacks = callbacks(context, client.as_ref(), &status).await?;
            describe(&status, &callbacks, &mut context.out)?;
        }
        let failed = [BatchState::Failed, BatchState::Cancelled];
        let failed = failed.iter().any(|state| state.as_str() == status.state);
        Ok(if self.watch && failed {
            Exit::FAILED
        } else {
            Exit::DONE
        })
    }

    /// Says how to go on after an interrupted wait.
    fn goes_on(&self) -> String {
        let id = &self.batch;
        format!("batch {id} goes on: `meshwork batch status {id} --watch` shows it")
    }

    async fn watched(&self, client: &Client) -> Result<BatchView, CommandError> {
        let mut bar = Bar::default();
        let draw = |status: &BatchStatus| bar.show(&BatchView::from(status));
        let batch = client.batch_of(self.batch.clone());
        let ended = with_keys(batch.wait(self.patience(), draw));
        let interrupt = Interrupt::listen_quietly()?;
        let ended = interrupt.or_detach(ended, self.goes_on()).await?;
        Ok(BatchView::from(&ended))
    }

    fn patience(&self) -> Duration {
        self.timeout.unwrap_or(Duration::from_secs(MAX_TIMEOUT))
    }

    async fn read(&self, context: &App) -> Result<BatchView, CommandError> {
        let params = json!({"id": self.batch.as_str()});
        context.call("batch.get", &params).await
    }

    async fn watched_by_api(&self, context: &App) -> Result<BatchView, CommandError> {
        let (until, mut bar) = (Instant::now() + self.patience(), Bar::default());
        let wait = async {
            loop {
                let status = self.read(context).await?;
                bar.show(&status);
                if status.ended_at.is_some() {
                    return Ok::<_, CommandError>(status);
                }
                if Instant::now() >= until {
                    let (id, waited) = (self.batch.clone(), self.patience());
                    return Err(Error::BatchWaitTimeout { id, waited }.into());
                }
                sleep(LOOK).await;
            }
        };
        let interrupt = Interrupt::listen_quietly()?;
        let wait = Box::pin(with_keys(wait));
        interrupt.or_detach(wait, self.goes_on()).await
    }
}

/// Time between two looks at a batch of the API.
const LOOK: Duration = Duration::from_secs(1);

/// Progress of a batch, to which jobs may still be added.
#[derive(Default)]
struct Bar(Option<(u64, Progress)>);

impl Bar {
    fn show(&mut self, status: &BatchView) {
        let all = status.total;
        let same = self.0.take().filter(|(before, _)| *before == all);
        let mut bar = same.map_or_else(|| Progress::new(all as usize), |(_, bar)| bar);
        bar.show((status.succeeded + status.failed) as usize);
        self.0 = Some((all, bar));
    }
}

/// Returns the callbacks of a batch: kind, id, and state if the job exists.
async fn callbacks(
    context: &App,
    client: Option<&Client>,
    batch: &BatchView,
) -> Result<Vec<(&'static str, JobId, Option<String>)>, CommandError> {
    let mut callbacks = Vec::new();
    for kind in Callback::ALL.map(Callback::as_str) {
        let Some(id) = batch.callbacks.get(kind) else {
            continue;
        };
        let id = JobId::foreign(id.clone());
        let state = match client {
            Some(client) => match client.summary(&id).await {
                Ok(job) => {
                    let states = client.states(std::slice::from_ref(&job)).await?;
                    let state = states.into_iter().next().flatten();
                    Some(state_of(&job, state).to_owned())
                }
                Err(Error::JobNotFound { .. }) => None,
                Err(error) => return Err(error.into()),
            },
            None => {
                let params = json!({"id": id.as_str()});
                match context.call::<JobView<'_>>("job.get", &params).await {
                    Ok(job) => Some(job.state.into_owned()),
                    Err(error) if error.exit == Exit::NO_JOB => None,
                    Err(error) => return Err(error),
                }
            }
        };
        callbacks.push((kind, id, state));
    }
    Ok(callbacks)
}

/// Prints a batch for people, a line per field that is set.
fn describe(
    batch: &BatchView,
    callbacks: &[(&str, JobId, Option<String>)],
    out: &mut Out,
) -> Result<(), OutError> {
    let numbers = [batch.total, batch.pending, batch.succeeded, batch.failed];
    let [total, pending, succeeded, failed] = numbers.map(|n| n.to_string());
    let cancelled = batch.cancelled.as_deref();
    // The line has the word already.
    let cancelled = cancelled.map(|why| why.strip_prefix("cancelled: ").unwrap_or(why));
    for (name, value) in [
        ("id", Some(batch.id.as_str())),
        ("name", Some(batch.name.as_str())),
        ("state", Some(batch.state.as_str())),
        (
            "expired",
            batch.expired.then_some("nobody sealed it in time"),
        ),
        ("cancelled", cancelled),
        ("jobs", Some(total.as_str())),
        ("pending", Some(pending.as_str())),
        ("finished", Some(succeeded.as_str())),
        ("failed", Some(failed.as_str())),
        ("first failed", batch.first_failed.as_deref()),
        ("opened", Some(batch.created_at.as_str())),
        ("open until", batch.open_until.as_deref()),
        ("ended", batch.ended_at.as_deref()),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            job_view::line(name, value, out)?;
        }
    }
    for (kind, id, state) in callbacks {
        let state = state.as_deref().unwrap_or("not needed, or gone");
        job_view::line(&format!("on {kind}"), &format!("{id} ({state})"), out)?;
    }
    Ok(())
}
