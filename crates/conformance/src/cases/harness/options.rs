//! Helpers of the cases about delays, limits, keys and unique names: settings of queues, and jobs with such
//! properties.

use std::time::Duration;

use meshwork_broker::complete::Completion as Done;
use meshwork_broker::{
    Claim, Claimed, ClaimedJobs, CompletedAndClaimed, OpenPrerequisite, PrefetchLists,
};
use meshwork_model::job::{Job, NewJob, When};

use crate::cases::World;
use crate::cases::harness::world::{Got, LEASE, WORKER};

/// Interval between two checks of jobs that are set aside, in milliseconds (`LOOK_EVERY` of the scripts).
pub(crate) const LOOK_MS: u64 = 5_000;

/// Configures the queue of [`World::job`], with a text such as `concurrency=1 fair=1`.
pub(crate) async fn set(world: &World, settings: &str) -> Got<()> {
    let field = format!("queue:{}", world.queue());
    world
        .raw(&["HSET", &world.keys().config(), &field, settings])
        .await
}

/// Sets the weight of a key of that queue.
pub(crate) async fn weigh(world: &World, key: &str, weight: &str) -> Got<()> {
    let field = format!("weight:{} {key}", world.queue());
    world
        .raw(&["HSET", &world.keys().config(), &field, weight])
        .await
}

/// Returns jobs of one key.
pub(crate) fn keyed(world: &World, key: &str, ids: &[&str]) -> Got<Vec<NewJob>> {
    let job = |id: &&str| {
        let mut job = world.job(id)?;
        job.key = Some(key.to_owned());
        job.retries = 3;
        Ok(job)
    };
    ids.iter().map(job).collect()
}

/// Enqueues jobs of one key.
pub(crate) async fn put_keyed(world: &World, key: &str, ids: &[&str]) -> Got<()> {
    world.put_jobs(&keyed(world, key, ids)?).await
}

/// Returns a delayed job.
pub(crate) fn delayed(world: &World, id: &str, ms: u64) -> Got<NewJob> {
    let mut job = world.job(id)?;
    job.when = Some(When::In(ms));
    Ok(job)
}

/// Runs promote. Returns the number of handled jobs, and the milliseconds until the next is due.
pub(crate) async fn promote(world: &World) -> Got<(usize, Option<u64>)> {
    let promoted = world.broker.promote().await?;
    Ok((
        promoted.due,
        promoted.next.map(|next| next.as_millis() as u64),
    ))
}

/// Claims from the queue of [`World::job`], and returns the whole answer.
pub(crate) async fn claim(world: &World, want: usize) -> Got<ClaimedJobs> {
    world.claim(WORKER, &[world.queue()], want).await
}

/// Returns the ids of a claim.
pub(crate) async fn taken(world: &World, want: usize) -> Got<Vec<String>> {
    let jobs = world.take(want).await?;
    Ok(jobs
        .into_iter()
        .map(|claimed| claimed.job.id.clone())
        .collect())
}

/// Returns the time for which a claim of `want` jobs reports the queue as full, in milliseconds.
pub(crate) async fn held(world: &World, want: usize) -> Got<Option<u64>> {
    let held = claim(world, want).await?.blocked;
    let ms =
        |(list, ms): &(String, Duration)| (*list == world.queue()).then_some(ms.as_millis() as u64);
    Ok(held.iter().find_map(ms))
}

/// Finishes these jobs with `42` and claims up to `want` more in one call.
pub(crate) async fn exchange(
    world: &World,
    ended: &[&Claimed],
    want: usize,
) -> Got<CompletedAndClaimed> {
    let results: Vec<_> = ended
        .iter()
        .map(|claimed| Done {
            claimed,
            output: b"42",
            stdout: b"",
            stderr: b"",
        })
        .collect();
    let claim = Claim {
        queues: &[world.queue()],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &world.token(),
    };
    Ok(world.broker.complete_and_claim(&results, claim).await?)
}

/// Returns the members of a sorted set of the queue, or of the queue and a key: `SLOTS`, `BACKLOG` …
pub(crate) async fn members(world: &World, set: &str, key: Option<&str>) -> Got<Vec<String>> {
    let key = key.map(|key| format!(" {key}")).unwrap_or_default();
    let set = format!("{}{}{key}", world.named(set)?, world.queue());
    world.raw(&["ZRANGE", &set, "0", "-1"]).await
}

/// Returns the prerequisites that a job waits for, with the status in their records.
pub(crate) async fn open(world: &World, job: &Job) -> Got<Vec<(String, Option<String>)>> {
    let open = world.broker.open_prerequisites(job).await?;
    let shown = open.into_iter().map(|one| match one {
        OpenPrerequisite::Ends { id, status, .. } => (id.to_string(), status),
        OpenPrerequisite::Gate(name) => (format!("gate {name}"), None),
        other => (format!("{other:?}"), None),
    });
    Ok(shown.collect())
}
