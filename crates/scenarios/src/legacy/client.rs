//! A client of an earlier version of Hero, with exactly its commands: it stores a job, pushes its id, and may wait for
//! the reply. It can kill itself between two commands.

use rand::SeedableRng;
use rand::rngs::StdRng;
use redis::Commands;

use super::LegacyError;
use super::orders::{Account, Orders, Point};

/// Jobs that one run of a client enqueues.
#[derive(Clone, Debug, clap::Args)]
pub struct Batch {
    /// Number of the client.
    #[arg(long)]
    pub(super) client: u64,
    /// The first job.
    #[arg(long)]
    pub(super) from: u64,
    /// The job after the last.
    #[arg(long)]
    pub(super) to: u64,
    /// Script type in the record, for clients whose records have one.
    #[arg(long)]
    pub(super) script_type: Option<String>,
    /// Timeout of the job in seconds.
    #[arg(long)]
    pub(super) timeout: u64,
    /// The script.
    #[arg(long)]
    pub(super) script: String,
    /// The client waits for one job in this many.
    #[arg(long)]
    pub(super) wait_for_each: u64,
    /// Timeout of this wait, in seconds.
    #[arg(long)]
    pub(super) wait: u64,
}

impl Batch {
    /// Returns the id of a job, which has the form of a UUID v4.
    pub(super) fn id(client: u64, number: u64) -> String {
        format!("{client:08x}-0000-4000-8000-{number:012x}")
    }
}

/// Enqueues the jobs of the batch, each recorded in a file before its push, so that the scenario can count lost ones.
///
/// # Errors
/// The server or the files fail.
pub fn submit(orders: &Orders, batch: &Batch) -> Result<(), LegacyError> {
    let mut random = StdRng::seed_from_u64(orders.seed);
    let mut redis = redis::Client::open(&*orders.url)?.get_connection()?;
    for number in batch.from..batch.to {
        let id = Batch::id(batch.client, number);
        let doom = orders.doom(&mut random, &Point::OF_CLIENTS);
        let () = redis.hset_multiple(
            format!("hero:job:{id}"),
            &fields(&id, &orders.worker_id, batch),
        )?;
        Account::Submitted.add(&orders.dir, &format!("{id} {}", orders.name))?;
        orders.die(doom, Point::Stored, &id)?;
        let () = redis.lpush(&orders.list, &id)?;
        orders.die(doom, Point::Pushed, &id)?;
        if number % batch.wait_for_each == 0 {
            let list = format!("hero:reply:{id}");
            let reply: Option<(String, String)> = redis.blpop(list, batch.wait as f64)?;
            if let Some((_, result)) = reply {
                Account::Replies.add(&orders.dir, &format!("{id} {result}"))?;
            }
        }
    }
    Ok(())
}

/// Returns the fields that a client of Hero writes into the record of a job.
pub(super) fn fields(id: &str, worker_id: &str, batch: &Batch) -> Vec<(&'static str, String)> {
    let mut fields: Vec<(&str, String)> = [
        ("id", id),
        ("caller_id", "old-client"),
        ("worker_id", worker_id),
        ("context_id", "c1"),
        ("script", &batch.script),
        ("retries", "0"),
        ("concurrent", "true"),
        ("created_at", "2025-08-01T12:00:00Z"),
        ("updated_at", "2025-08-01T12:00:00Z"),
        ("status", "dispatched"),
        ("env_vars", "{}"),
        ("prerequisites", "[]"),
        ("dependents", "[]"),
        ("dependencies", "[]"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into();
    fields.push(("timeout", batch.timeout.to_string()));
    if let Some(script_type) = &batch.script_type {
        fields.push(("script_type", script_type.clone()));
    }
    fields
}
