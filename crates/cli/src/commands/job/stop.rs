//! `meshwork job stop`.

use std::time::Duration;

use meshwork::model::name::JobId;
use meshwork::{Cancelled, Client, Error as MeshworkError};
use tokio::time::Instant;

use crate::change::{Change, tell};
use crate::context::Context;
use crate::error::Error;
use crate::exit::Exit;
use crate::value;

/// Stop jobs that wait or run; they end in error
///
/// Of a job that runs, its worker is told; it lets the script put things in order, kills it after a grace
/// period, and then the job has ended. A worker that is gone is found out when its lease ends.
#[derive(Debug, clap::Args)]
pub(crate) struct Stop {
    /// The jobs' ids
    #[arg(required = true, value_name = "ID", value_parser = value::job_id)]
    ids: Vec<JobId>,
    /// End them at once, whatever their workers say; a script goes on until its worker learns of it
    #[arg(long)]
    force: bool,
    /// Do not wait until they have ended
    #[arg(long)]
    no_wait: bool,
    /// How long to wait until all of them have ended, in seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = value::wait,
          allow_hyphen_values = true, conflicts_with = "no_wait")]
    timeout: Duration,
}

impl Stop {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Error> {
        let client = context.client().await?;
        // First all are told, so that all their workers stop at the same time.
        let mut told = Vec::with_capacity(self.ids.len());
        for id in &self.ids {
            told.push(self.stop(&client, id).await);
        }
        let until = Instant::now() + self.timeout;
        let mut exit = Exit::DONE;
        for (id, mut stopped) in self.ids.iter().zip(told) {
            if matches!(stopped, Ok(Cancelled::Stopping)) && !self.no_wait {
                let left = until.saturating_duration_since(Instant::now());
                stopped = client
                    .stopped(id, left)
                    .await
                    .map_err(|error| self.late(error));
            }
            let change = match stopped {
                Ok(Cancelled::Cancelled) => Ok(Change::Done("stopped")),
                Ok(Cancelled::Stopping) => Ok(Change::Done("stopping")),
                Ok(Cancelled::Ended) => Ok(Change::Done("ended")),
                Ok(Cancelled::Missing) => Err(MeshworkError::NoJob { id: id.clone() }),
                Err(error) => Err(error),
            };
            exit = exit.or(tell(&mut context.out, id.as_str(), change)?);
            context.out.flush()?;
        }
        Ok(exit)
    }

    async fn stop(&self, client: &Client, id: &JobId) -> Result<Cancelled, MeshworkError> {
        if self.force {
            client.stop_by_force(id).await
        } else {
            client.stop(id).await
        }
    }

    /// The whole time, not what was left of it for this one.
    fn late(&self, mut error: MeshworkError) -> MeshworkError {
        if let MeshworkError::NotStopped { waited, .. } = &mut error {
            *waited = self.timeout;
        }
        error
    }
}
