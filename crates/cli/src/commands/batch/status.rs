//! `meshwork batch status`.

use std::time::Duration;

use meshwork::view::BatchView;
use meshwork::{BatchState, BatchStatus, Client};
use meshwork_model::job::limits::MAX_TIMEOUT;
use meshwork_model::name::{BatchId, JobId};
use meshwork_model::state::State;
use meshwork_model::time;

use crate::app::App;
use crate::args::parsers;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::out::job_view;
use crate::out::{Out, Progress, with_keys};

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
        let client = context.client().await?;
        let batch = client.batch_of(self.batch.clone());
        let status = if self.watch {
            let patience = self.timeout.unwrap_or(Duration::from_secs(MAX_TIMEOUT));
            let mut drawn: Option<(u64, Progress)> = None;
            let draw = |status: &BatchStatus| {
                let all = status.total;
                // Jobs may still be added.
                let same = drawn.take().filter(|(before, _)| *before == all);
                let mut bar = same.map_or_else(|| Progress::new(all as usize), |(_, bar)| bar);
                bar.show((status.succeeded + status.failed) as usize);
                drawn = Some((all, bar));
            };
            let id = &self.batch;
            let how = format!("batch {id} goes on: `meshwork batch status {id} --watch` shows it");
            let ended = with_keys(batch.wait(patience, draw));
            Interrupt::listen_quietly()?.or_detach(ended, how).await?
        } else {
            batch.status().await?
        };
        if context.out.is_json() {
            context.out.json(&BatchView::from(&status))?;
        } else {
            describe(&client, &status, &mut context.out).await?;
        }
        let failed = matches!(status.state, BatchState::Failed | BatchState::Cancelled);
        Ok(if self.watch && failed {
            Exit::FAILED
        } else {
            Exit::DONE
        })
    }
}

/// Prints a batch for people, a line per field that is set.
async fn describe(client: &Client, batch: &BatchStatus, out: &mut Out) -> Result<(), CommandError> {
    let numbers = [batch.total, batch.pending(), batch.succeeded, batch.failed];
    let [total, pending, succeeded, failed] = numbers.map(|n| n.to_string());
    let [created, open_until, ended] =
        [Some(batch.created_ms), batch.open_until_ms, batch.ended_ms].map(|at| at.map(time::iso));
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
        ("opened", created.as_deref()),
        ("open until", open_until.as_deref()),
        ("ended", ended.as_deref()),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            job_view::line(name, value, out)?;
        }
    }
    let ids = batch.callbacks.iter();
    let ids: Vec<_> = ids.map(|(_, id)| JobId::foreign(id.clone())).collect();
    let statuses = client.broker().statuses(&ids).await?;
    for ((kind, id), status) in batch.callbacks.iter().zip(statuses) {
        let status = status.map_or("not needed, or gone", |status| State::from(status).as_str());
        job_view::line(&format!("on {kind}"), &format!("{id} ({status})"), out)?;
    }
    Ok(())
}
