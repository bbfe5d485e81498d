//! The whole life of a job, and of many at once.

use std::collections::{BTreeMap, BTreeSet};

use meshwork_broker::{Completed, Failed};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::{LEASE_MS, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_job_goes_in_and_its_result_comes_out,
    a_killed_workers_job_ends_elsewhere,
    a_stopping_workers_jobs_end_elsewhere,
    fail_stop_and_ask_again,
    many_workers_run_each_job_once,
    two_namespaces_know_nothing_of_each_other,
    scripts_that_the_server_forgot_are_sent_again,
];

/// Enqueue, claim, renew, finish, read.
async fn a_job_goes_in_and_its_result_comes_out(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.pass(LEASE_MS / 2);
    check!(
        world
            .renew(WORKER, std::slice::from_ref(&claimed))
            .await?
            .is_empty()
    );
    world.pass(LEASE_MS - 1);
    check!(world.broker.reclaim().await?.requeued.is_empty());
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    let job = world.read("j1").await?;
    same!(job.output.as_deref(), Some(&b"42"[..]));
    same!((job.attempt, job.lost), (1, 0));
    same!(world.broker.running().await?, 0);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// One worker dies with the job, and another one ends it; the record shows this.
async fn a_killed_workers_job_ends_elsewhere(world: &World) -> Outcome {
    let dead = world.started("j1").await?;
    world.lose_all().await?;
    let mut taken = world.claim("w2-b", &[world.queue()], 1).await?.jobs;
    let alive = taken
        .pop()
        .ok_or_else(|| Failure::new("not claimed again"))?;
    same!(world.finish(&alive, "42").await?, Completed::Finished);
    same!(world.finish(&dead, "41").await?, Completed::Stale);
    let job = world.read("j1").await?;
    same!(job.output.as_deref(), Some(&b"42"[..]));
    same!((job.attempt, job.lost), (1, 1));
    same!(job.worker.as_deref(), Some("w2-b"));
    Ok(())
}

/// The worker releases its jobs and leaves; no state of it stays, and no attempt is counted.
async fn a_stopping_workers_jobs_end_elsewhere(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    let held = world.take(2).await?;
    world.renew(WORKER, &held).await?;
    for claimed in held.iter().rev() {
        world.broker.release(claimed).await?;
    }
    let queues = [world.queue()];
    let listener = meshwork_broker::Listener {
        worker: WORKER,
        queues: &queues,
    };
    world.broker.deregister_prefetch(listener).await?;
    same!(world.waiting().await?, ["j1", "j2"]);
    for claimed in world.claim("w2-b", &queues, 2).await?.jobs {
        same!((claimed.job.attempt, claimed.job.lost), (1, 0));
        world.finish(&claimed, "42").await?;
    }
    same!(world.list(&world.queue()).await?.len(), 0);
    let own: i64 = world
        .raw(&[
            "EXISTS",
            &world.keys().lease(),
            &world.keys().prefetch_registry(),
        ])
        .await?;
    same!(own, 0);
    Ok(())
}

/// A job fails, is retried, cancelled, retried by hand, and ends.
async fn fail_stop_and_ask_again(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Requeued
    );
    let claimed = world.take_one().await?;
    world.broker.cancel(&claimed.job, "stopped", true).await?;
    same!(world.finish(&claimed, "41").await?, Completed::Stale);
    world.broker.retry(&world.read("j1").await?).await?;
    let claimed = world.take_one().await?;
    same!(claimed.job.attempt, 1);
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    let record = world.record("j1").await?;
    same!(record.get("output").map(String::as_str), Some("42"));
    check!(!record.contains_key("error"));
    Ok(())
}

/// Runs one of many workers: it claims up to three jobs at a time until none is left, and ends each. Returns the ids.
async fn work(world: &World, name: String) -> Result<Vec<String>, Failure> {
    let mut ran = Vec::new();
    loop {
        let taken = world.claim(&name, &[world.queue()], 3).await?;
        if taken.jobs.is_empty() {
            return Ok(ran);
        }
        world.renew(&name, &taken.jobs).await?;
        for claimed in taken.jobs {
            let said = world.finish(&claimed, &claimed.job.id).await?;
            if said != Completed::Finished {
                return Err(Failure::new(format!("{} was not ours", claimed.job.id)));
            }
            ran.push(claimed.job.id.clone());
        }
    }
}

/// Eight workers run 300 jobs at the same time: each job runs once.
async fn many_workers_run_each_job_once(world: &World) -> Outcome {
    let names: Vec<_> = (0..300).map(|n| format!("j{n}")).collect();
    let refs: Vec<_> = names.iter().map(String::as_str).collect();
    world.put(&refs).await?;
    let workers = (0..8).map(|n| work(world, format!("w{n}-x")));
    let ran = futures_util::future::try_join_all(workers).await?.concat();
    same!(ran.len(), 300);
    same!(
        ran.into_iter().collect::<BTreeSet<_>>(),
        names.iter().cloned().collect()
    );
    for id in &names {
        let job = world.read(id).await?;
        same!((job.attempt, job.status.as_str()), (1, "finished"));
        same!(job.output.as_deref(), Some(id.as_bytes()));
    }
    same!(world.broker.running().await?, 0);
    Ok(())
}

/// Neither namespace sees, claims or reclaims jobs of the other.
async fn two_namespaces_know_nothing_of_each_other(world: &World) -> Outcome {
    let other = world.neighbour()?;
    world.started("j1").await?;
    world.renew(WORKER, &[]).await?;
    world.put(&["j2"]).await?;
    let before = world.all().await?;
    world.pass(LEASE_MS);
    other.pass(LEASE_MS);
    check!(other.take(5).await?.is_empty());
    check!(other.broker.reclaim().await?.requeued.is_empty());
    check!(other.broker.list(0).await?.jobs.is_empty());
    check!(other.broker.queues().await?.is_empty());
    world.unchanged(&before).await
}

/// After `SCRIPT FLUSH`, or a failover to another server, each verb still works.
async fn scripts_that_the_server_forgot_are_sent_again(world: &World) -> Outcome {
    let fresh = world.with_unknown_scripts();
    let claimed = fresh.started("j1").await?;
    check!(
        fresh
            .renew(WORKER, std::slice::from_ref(&claimed))
            .await?
            .is_empty()
    );
    fresh.broker.release(&claimed).await?;
    fresh.take_one().await?;
    same!(fresh.lose_all().await?.requeued, ["j1"]);
    let claimed = fresh.take_one().await?;
    same!(
        fresh.fail(&claimed, FailureKind::Script).await?,
        Failed::Failed
    );
    fresh.broker.retry(&fresh.read("j1").await?).await?;
    let claimed = fresh.take_one().await?;
    same!(fresh.finish(&claimed, "42").await?, Completed::Finished);
    fresh.broker.cancel(&claimed.job, "stopped", true).await?;
    fresh.broker.delete(&claimed.job).await?;
    let left: BTreeMap<String, String> = fresh.record("j1").await?;
    check!(left.is_empty());
    Ok(())
}
