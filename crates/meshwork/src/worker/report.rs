//! Report: tells the broker how a run ended, as often as it takes.

use std::time::Duration;

use meshwork_broker::{Backoff, Claimed, Failed, Finished};
use meshwork_model::outcome::Report;
use tokio::time::Instant;

use super::Setup;
use crate::runner::StopSignal;

/// How long a report is repeated while the server is away; after that the job runs again when its lease
/// has ended.
const REPEAT_FOR: Duration = Duration::from_secs(600);

/// Reports until the broker has answered, the job is lost, or [`REPEAT_FOR`] is over.
pub(super) async fn report(setup: &Setup, claimed: &Claimed, report: Report, stop: &StopSignal) {
    let (until, mut backoff) = (Instant::now() + REPEAT_FOR, Backoff::new());
    let job = &claimed.job.id;
    loop {
        match once(setup, claimed, &report).await {
            Ok(Told::Fresh) => tracing::debug!(job, ok = report.result.is_ok(), "reported"),
            Ok(Told::Stale) => {
                tracing::warn!(job, "the job is not ours any more; its result is dropped");
            }
            Err(error) if error.is_temporary() && Instant::now() < until => {
                tracing::warn!(job, %error, "report failed; trying again");
                tokio::select! {
                    () = backoff.wait() => continue,
                    () = stop.lost() => {}
                }
            }
            Err(error) => tracing::error!(job, %error, "the result could not be reported"),
        }
        return;
    }
}

enum Told {
    Fresh,
    Stale,
}

async fn once(
    setup: &Setup,
    claimed: &Claimed,
    report: &Report,
) -> Result<Told, meshwork_broker::Error> {
    let Report {
        result,
        stdout,
        stderr,
    } = report;
    let stale = match result {
        Ok(output) => {
            let told = setup.broker.finish(claimed, output, stdout, stderr).await?;
            told == Finished::Stale
        }
        Err(failure) => {
            let pause = setup.backoff.pause(
                claimed.job.attempt,
                claimed.job.backoff_ms.map(Duration::from_millis),
                rand::random(),
            );
            let told = setup
                .broker
                .fail(claimed, failure, stdout, stderr, pause)
                .await?;
            if told == Failed::Requeued {
                setup.due.note(pause);
            }
            told == Failed::Stale
        }
    };
    Ok(if stale { Told::Stale } else { Told::Fresh })
}
