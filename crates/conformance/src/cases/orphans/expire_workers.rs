//! orphan: reclaims the jobs of dead workers before their leases expire.

use std::collections::BTreeSet;

use crate::cases::harness::world::{LEASE_MS, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    the_leases_of_a_dead_worker_end_now,
    its_listener_entries_end_now,
    several_workers_at_once,
    a_job_that_another_worker_has_is_left,
    what_ended_before_stays_as_it_was,
    found_among_more_leases_than_one_call_handles,
    a_repeated_call_changes_nothing,
    nobody_changes_nothing,
];

/// A worker other than [`WORKER`].
const OTHER: &str = "w2-b";

async fn orphan(world: &World, workers: &[&str]) -> Result<usize, Failure> {
    let workers: BTreeSet<_> = workers.iter().map(|worker| (*worker).to_owned()).collect();
    Ok(world.broker.expire_workers(&workers).await?)
}

/// Starts a job on each of the two workers, which are both registered.
async fn both(world: &World) -> Result<(), Failure> {
    world.put(&["j1", "j2"]).await?;
    for worker in [WORKER, OTHER] {
        world.renew(worker, &[]).await?;
        let taken = world.claim(worker, &[world.queue()], 1).await?;
        same!(taken.jobs.len(), 1);
    }
    Ok(())
}

/// Its job is reclaimed at once, and the other worker keeps its own.
async fn the_leases_of_a_dead_worker_end_now(world: &World) -> Outcome {
    both(world).await?;
    world.pass(1);
    same!(orphan(world, &[WORKER]).await?, 1);
    same!(world.lease("j1").await?, Some(world.now()));
    same!(world.lease("j2").await?, Some(world.now() - 1 + LEASE_MS));
    same!(world.broker.reclaim().await?.requeued, ["j1"]);
    let job = world.read("j1").await?;
    same!((job.attempt, job.lost), (0, 1));
    same!(world.status("j2").await?, "started");
    Ok(())
}

/// Its registration no longer counts, and its prefetched ids return. The other registration stays.
async fn its_listener_entries_end_now(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    world.renew(OTHER, &[]).await?;
    for worker in [WORKER, OTHER] {
        let feed = world.feed(worker);
        world.raw::<()>(&["LPUSH", &feed, worker]).await?;
    }
    let other = world.listener(OTHER).await?;
    same!(orphan(world, &[WORKER]).await?, 0);
    same!(world.listener(WORKER).await?, Some(world.now()));
    same!(world.listener(OTHER).await?, other);
    same!(world.broker.reclaim().await?.moved, 1);
    same!(world.waiting().await?, [WORKER]);
    same!(orphan(world, &[OTHER]).await?, 0);
    check!(!world.broker.is_listened(&world.queue()).await?);
    Ok(())
}

/// Each worker's jobs are reclaimed.
async fn several_workers_at_once(world: &World) -> Outcome {
    both(world).await?;
    same!(orphan(world, &[WORKER, OTHER, "w3-c"]).await?, 2);
    let mut back = world.broker.reclaim().await?.requeued;
    back.sort();
    same!(back, ["j1", "j2"]);
    Ok(())
}

/// The job was reclaimed before, and runs elsewhere by now.
async fn a_job_that_another_worker_has_is_left(world: &World) -> Outcome {
    world.started("j1").await?;
    world.lose_all().await?;
    world.claim(OTHER, &[world.queue()], 1).await?;
    let before = world.all().await?;
    same!(orphan(world, &[WORKER]).await?, 0);
    world.unchanged(&before).await
}

/// The time for late ids of a dead listener counts from its end, and the longest overdue goes first.
async fn what_ended_before_stays_as_it_was(world: &World) -> Outcome {
    both(world).await?;
    world.pass(10 * LEASE_MS);
    let before = world.all().await?;
    same!(orphan(world, &[WORKER, OTHER]).await?, 0);
    world.unchanged(&before).await
}

/// The number of running jobs does not matter.
async fn found_among_more_leases_than_one_call_handles(world: &World) -> Outcome {
    both(world).await?;
    let far = (world.now() + LEASE_MS).to_string();
    let ids: Vec<_> = (0..2500).map(|n| format!("x{n}")).collect();
    let lease = world.keys().lease();
    let mut add = vec!["ZADD", &lease];
    add.extend(ids.iter().flat_map(|id| [far.as_str(), id]));
    world.raw::<()>(&add).await?;
    same!(orphan(world, &[WORKER]).await?, 1);
    same!(world.broker.reclaim().await?.requeued, ["j1"]);
    Ok(())
}

/// A call that is repeated after a broken connection changes nothing.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    both(world).await?;
    orphan(world, &[WORKER]).await?;
    world.pass(1);
    let before = world.all().await?;
    same!(orphan(world, &[WORKER]).await?, 0);
    world.unchanged(&before).await
}

/// A call without a worker does nothing.
async fn nobody_changes_nothing(world: &World) -> Outcome {
    both(world).await?;
    let before = world.all().await?;
    same!(orphan(world, &[]).await?, 0);
    world.unchanged(&before).await
}
