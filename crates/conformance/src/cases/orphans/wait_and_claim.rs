//! Waiting for a job and claiming it in one trip: the claim follows the blocking read.

use std::time::Duration;

use meshwork_broker::{Arrived, ClaimedJobs, WaitingClaim};

use crate::cases::harness::legacy_worker::{migrate, old, put_old};
use crate::cases::harness::options::{set, taken};
use crate::cases::harness::world::{LEASE, LEASE_MS, PATIENCE, START, WORKER, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_job_that_is_there_is_claimed,
    a_push_by_any_client_is_claimed,
    one_job_is_claimed_and_more_are_reported,
    what_came_before_is_claimed_first,
    after_a_wait_nothing_is_claimed_off_the_queue,
    ids_without_a_job_are_dropped,
    a_paused_queue_gives_an_id,
    a_limited_queue_gives_an_id,
    a_queue_with_other_settings_gives_a_job,
    a_job_of_an_old_list_returns_to_its_queue,
    a_script_that_is_not_loaded_leaves_the_id,
    the_lease_begins_with_the_claim,
];

/// Waits at a list, whose jobs return to the queue of plain jobs.
async fn wait_at(world: &World, list: &str, wait: Duration) -> Result<Arrived, Failure> {
    let blocking = world.broker.blocking_conn().await?;
    let waiting = WaitingClaim {
        list,
        requeue_to: &world.queue(),
        wait,
        lease: LEASE,
        worker: WORKER,
        token: &world.token(),
    };
    Ok(world.broker.wait_and_claim(&blocking, &waiting).await?)
}

/// Loads the script, since a pipeline cannot, and waits at the queue of plain jobs.
async fn wait(world: &World) -> Result<Arrived, Failure> {
    check!(world.take(0).await?.is_empty());
    wait_at(world, &world.queue(), PATIENCE).await
}

/// Waits, and returns the claimed jobs.
async fn claimed(world: &World) -> Result<ClaimedJobs, Failure> {
    match wait(world).await? {
        Arrived::Jobs(jobs) => Ok(jobs),
        other => Err(Failure::new(format!("no jobs: {other:?}"))),
    }
}

/// Waits, and expects an id that only a claim with free slots may take.
async fn gives_an_id(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    let came = wait(world).await?;
    check!(matches!(came, Arrived::Id));
    same!(world.list(&world.feed(WORKER)).await?, ["a"]);
    same!(world.waiting().await?, ["b"]);
    same!(world.status("a").await?, "dispatched");
    Ok(())
}

/// The record comes with the job, as from a claim.
async fn a_job_that_is_there_is_claimed(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let came = claimed(world).await?;
    same!(
        (ids(&came.jobs), came.more, came.dropped),
        (vec!["j1"], false, 0)
    );
    let job = &came.jobs[0];
    same!((&*job.job.script, job.job.attempt), (&b"j1"[..], 1));
    same!(job.queue, world.queue());
    same!(world.status("j1").await?, "started");
    check!(world.list(&world.feed(WORKER)).await?.is_empty());
    world.finish(job, "42").await?;
    same!(world.status("j1").await?, "finished");
    Ok(())
}

/// The worker waits already.
async fn a_push_by_any_client_is_claimed(world: &World) -> Outcome {
    let put = world.put_foreign("j1", &[]);
    let (came, put) = tokio::join!(claimed(world), put);
    put?;
    same!(ids(&came?.jobs), ["j1"]);
    Ok(())
}

/// Only what arrived is claimed; the next claim has free slots for the others.
async fn one_job_is_claimed_and_more_are_reported(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let came = claimed(world).await?;
    same!((ids(&came.jobs), came.more), (vec!["j1"], true));
    same!(world.waiting().await?, ["j2", "j3"]);
    Ok(())
}

/// An id is left of a read whose answer was lost.
async fn what_came_before_is_claimed_first(world: &World) -> Outcome {
    check!(world.take(0).await?.is_empty());
    world.put(&["j1", "j2"]).await?;
    let (queue, feed) = (world.queue(), world.feed(WORKER));
    let moved = ["LMOVE", &queue, &feed, "RIGHT", "LEFT"];
    world.raw::<()>(&moved).await?;
    let Arrived::Jobs(came) = wait_at(world, &queue, PATIENCE).await? else {
        return Err(Failure::new("no job"));
    };
    same!((ids(&came.jobs), came.more), (vec!["j1"], true));
    same!(world.list(&feed).await?, ["j2"]);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// The claims of the worker look there, with all its queues and their order.
async fn after_a_wait_nothing_is_claimed_off_the_queue(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let before = world.all().await?;
    check!(world.take(0).await?.is_empty());
    let other = world.queue_of("rhai");
    let short = Duration::from_millis(30);
    check!(matches!(
        wait_at(world, &other, short).await?,
        Arrived::Nothing
    ));
    world.unchanged(&before).await
}

/// They are reported, since no claim will find them. The next job is left for a claim with all queues.
async fn ids_without_a_job_are_dropped(world: &World) -> Outcome {
    for setting in ["", "payload=1000"] {
        if !setting.is_empty() {
            set(world, setting).await?;
        }
        world.push("ghost").await?;
        let id = format!("j{}", setting.len());
        world.put(&[&id]).await?;
        let came = claimed(world).await?;
        same!((came.jobs.len(), came.dropped, came.more), (0, 1, true));
        check!(world.list(&world.feed(WORKER)).await?.is_empty());
        same!(taken(world, 5).await?, [id]);
    }
    Ok(())
}

/// A claim returns the id to the queue, and says for how long it is paused.
async fn a_paused_queue_gives_an_id(world: &World) -> Outcome {
    set(world, "paused=1").await?;
    gives_an_id(world).await?;
    check!(taken(world, 5).await?.is_empty());
    same!(world.waiting().await?, ["a", "b"]);
    Ok(())
}

/// The worker may have no free slot any more, and the job would use up the limit.
async fn a_limited_queue_gives_an_id(world: &World) -> Outcome {
    set(world, "concurrency=1").await?;
    gives_an_id(world).await?;
    same!(taken(world, 5).await?, ["a"]);
    Ok(())
}

/// Settings that limit nothing leave the queue as fast as it is.
async fn a_queue_with_other_settings_gives_a_job(world: &World) -> Outcome {
    set(world, "payload=1000").await?;
    world.put(&["a", "b"]).await?;
    let came = claimed(world).await?;
    same!((ids(&came.jobs), came.more), (vec!["a"], true));
    same!(world.waiting().await?, ["b"]);
    Ok(())
}

/// As from a claim.
async fn a_job_of_an_old_list_returns_to_its_queue(world: &World) -> Outcome {
    migrate(world, "canonical").await?;
    put_old(world, "j1", &[]).await?;
    check!(world.take(0).await?.is_empty());
    let Arrived::Jobs(came) = wait_at(world, &old(world), PATIENCE).await? else {
        return Err(Failure::new("no job"));
    };
    same!(ids(&came.jobs), ["j1"]);
    same!(came.jobs[0].queue, world.queue());
    Ok(())
}

/// The next claim loads the script.
async fn a_script_that_is_not_loaded_leaves_the_id(world: &World) -> Outcome {
    let unknown = world.with_unknown_scripts();
    world.put(&["j1"]).await?;
    let came = wait_at(&unknown, &world.queue(), PATIENCE).await?;
    check!(matches!(came, Arrived::Id));
    same!(world.list(&world.feed(WORKER)).await?, ["j1"]);
    same!(ids(&unknown.take(1).await?), ["j1"]);
    Ok(())
}

/// It ends as that of any other job.
async fn the_lease_begins_with_the_claim(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let came = claimed(world).await?;
    same!(came.at_ms, START);
    same!(world.lease("j1").await?, Some(START + LEASE_MS));
    same!(world.lose_all().await?.requeued, ["j1"]);
    Ok(())
}
