//! orphans: finds jobs that dead workers of Bananas left in the list of running jobs.

use meshwork_macros::boxed;
use std::time::Duration;

use meshwork_model::bananas::{ClientVariant, Status};
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Bananas, Found};
use crate::error::Error;
use crate::script::Verb;

/// A job that no Meshwork worker runs, and that has been in the list of running jobs for too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Its id, any bytes.
    pub id: Vec<u8>,
    found: Found,
    age: Duration,
}

impl Bananas {
    /// Finds jobs that have been in the list of running jobs for longer than `age` since Meshwork first saw them
    /// there, and that no Meshwork worker runs. Jobs whose record is that of a dead letter are excluded.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn orphans(&self, age: Duration) -> Result<Vec<Orphan>, Error> {
        let rows: Vec<(Vec<u8>, String, Vec<u8>)> = self
            .call(Verb::BananasOrphans)
            .arg(age.as_millis() as u64)
            .run(&self.conn)
            .await?;
        let orphan = |(id, state, text): (_, String, _)| Orphan {
            id,
            found: Found::read(&state, text),
            age,
        };
        let is_dead = |orphan: &Orphan| match &orphan.found {
            Found::Job(record) => record.status() == Some(Status::Failed),
            _ => false,
        };
        let orphans = rows.into_iter().map(orphan);
        Ok(orphans.filter(|orphan| !is_dead(orphan)).collect())
    }

    /// Requeues such a job as the next one in the list to which `variant` pushes jobs of its route. Bananas' workers
    /// take no lease: one that still runs the job is not notified, and the job runs twice. Returns false if the job
    /// is gone, or a Meshwork worker runs it.
    ///
    /// # Errors
    /// The server refuses the call.
    #[boxed]
    pub async fn rescue(&self, orphan: &Orphan, variant: ClientVariant) -> Result<bool, Error> {
        let (route, priority) = match &orphan.found {
            Found::Job(record) => (record.route().unwrap_or_default(), record.priority()),
            // The worker that claims the id finds that it is not a job.
            _ => (RoutingKey::default(), Priority::default()),
        };
        let done: u8 = self
            .call(Verb::BananasRescue)
            .key(variant.list(&self.keys, &route, priority))
            .arg(orphan.id.as_slice())
            .arg(orphan.age.as_millis() as u64)
            .run(&self.conn)
            .await?;
        Ok(done == 1)
    }
}
