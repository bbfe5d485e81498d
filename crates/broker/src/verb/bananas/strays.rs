//! strays: what workers of Bananas that went away left among the jobs that run.

use std::time::Duration;

use meshwork_model::bananas::{Peer, Status};
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Bananas, Found};
use crate::error::Error;
use crate::script::Verb;

/// A job that nobody of ours runs, and that has stood among those that run for too long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// Its id, any bytes.
    pub id: Vec<u8>,
    found: Found,
    age: Duration,
}

impl Bananas {
    /// Finds what has stood among the jobs that run for longer than `age`, since we first saw it there, and is not
    /// run by ours. What its record says to have failed for good is a dead letter, and none of these.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn strays(&self, age: Duration) -> Result<Vec<Stray>, Error> {
        let rows: Vec<(Vec<u8>, String, Vec<u8>)> = self
            .call(Verb::BananasStrays)
            .arg(age.as_millis() as u64)
            .run(&self.conn)
            .await?;
        let stray = |(id, state, text): (_, String, _)| Stray {
            id,
            found: Found::read(&state, text),
            age,
        };
        let is_dead = |stray: &Stray| match &stray.found {
            Found::Job(record) => record.status() == Some(Status::Failed),
            _ => false,
        };
        let strays = rows.into_iter().map(stray);
        Ok(strays.filter(|stray| !is_dead(stray)).collect())
    }

    /// Puts a stray back into the list to which `peer` pushes jobs of its route, as the next one. Bananas' workers
    /// keep no lease: one that still runs such a job is not told, and the job runs twice. False if it is not there
    /// any more, or ours runs it.
    ///
    /// # Errors
    /// If the server does not take the call.
    pub async fn adopt(&self, stray: &Stray, peer: Peer) -> Result<bool, Error> {
        let (route, priority) = match &stray.found {
            Found::Job(record) => (record.route().unwrap_or_default(), record.priority()),
            // Whoever takes it finds that it is no job.
            _ => (RoutingKey::default(), Priority::default()),
        };
        let done: u8 = self
            .call(Verb::BananasAdopt)
            .key(peer.list(&self.keys, &route, priority))
            .arg(stray.id.as_slice())
            .arg(stray.age.as_millis() as u64)
            .run(&self.conn)
            .await?;
        Ok(done == 1)
    }
}
