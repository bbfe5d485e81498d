//! The client of a fleet: submits jobs one by one during the troubles, and in the end checks each acknowledged job.

use std::path::PathBuf;
use std::time::Duration;

use meshwork::{Client, JobRequest};
use meshwork_broker::conn::{Target, TlsFiles};
use meshwork_model::name::JobId;
use meshwork_model::state::Status;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::SCRIPT;
use crate::chaos::ChaosError;

/// Time between two submissions: about the rate at which three workers run jobs.
const PACE: Duration = Duration::from_millis(60);
/// Timeout of a job after the last trouble.
const END: Duration = Duration::from_secs(120);
/// More retries than any job needs, so that no job ends in error because it has none left.
const RETRIES: u32 = 100;

/// A running client.
pub(super) struct Submitted {
    stop: CancellationToken,
    work: JoinHandle<Tally>,
    client: Client,
}

#[derive(Default)]
struct Tally {
    submitted: usize,
    acknowledged: Vec<JobId>,
}

impl Submitted {
    pub(super) async fn start(url: String, tally: PathBuf) -> Result<Self, ChaosError> {
        let target = Target::parse(&url, TlsFiles::default()).map_err(failed)?;
        let client = Client::connect(&target).await.map_err(failed)?;
        let stop = CancellationToken::new();
        let work = tokio::spawn(submit(client.clone(), tally, stop.clone()));
        Ok(Self { stop, work, client })
    }

    /// Stops the client. Returns the number of submitted jobs, the number of acknowledged ones, and those of the
    /// latter without a correct result.
    pub(super) async fn stop_and_count(self) -> Result<(usize, usize, Vec<String>), ChaosError> {
        self.stop.cancel();
        let tally = self.work.await.map_err(failed)?;
        let mut lost = Vec::new();
        for id in &tally.acknowledged {
            let expected: String = id.as_str().chars().rev().collect();
            let job = match self.client.wait(id, END).await {
                Ok(job) => job,
                Err(error) => {
                    lost.push(error.to_string());
                    continue;
                }
            };
            let right = job.output.as_deref() == Some(expected.as_bytes());
            if job.status() != Some(Status::Finished) || !right {
                lost.push(format!(
                    "{id}: {} {:?} {:?}",
                    job.status, job.error, job.output
                ));
            }
        }
        Ok((tally.submitted, tally.acknowledged.len(), lost))
    }
}

async fn submit(client: Client, file: PathBuf, stop: CancellationToken) -> Tally {
    let mut tally = Tally::default();
    let mut pace = tokio::time::interval(PACE);
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !stop.is_cancelled() {
        pace.tick().await;
        let Some(request) = request(tally.submitted, &file) else {
            break;
        };
        tally.submitted += 1;
        if let Ok(id) = client.enqueue(request).await {
            tally.acknowledged.push(id);
        }
    }
    tally
}

fn request(number: usize, tally: &std::path::Path) -> Option<JobRequest> {
    let id = format!("job-{number:06}").parse().ok()?;
    let env = [("TALLY".to_owned(), tally.display().to_string())];
    let request = JobRequest::new("python".parse().ok()?, SCRIPT).id(id);
    Some(request.retries(RETRIES).env(env.into_iter().collect()))
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> ChaosError {
    ChaosError::io("the client")(std::io::Error::other(error))
}
