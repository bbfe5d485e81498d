//! reclaim: requeues the jobs of dead workers, and stops jobs that kill workers.

use meshwork_broker::Reclaimed;
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::{LEASE_MS, WORKER};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    leaves_what_is_leased,
    takes_back_within_one_lease,
    makes_the_job_nobodys,
    goes_back_to_the_queue_it_came_from,
    counts_the_loss_and_not_the_attempt,
    a_loss_costs_no_retry,
    ends_what_loses_too_many_workers,
    a_retry_asked_for_forgives_the_losses,
    takes_back_a_bounded_number,
    the_longest_overdue_first,
    forgets_the_lease_of_a_job_that_is_gone,
    passes_over_what_is_no_job,
    leaves_a_job_that_does_not_run,
    a_repeated_call_changes_nothing,
];

/// A job with a live worker stays.
async fn leaves_what_is_leased(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    world.take(2).await?;
    let before = world.all().await?;
    world.pass(LEASE_MS - 1);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    world.unchanged(&before).await
}

/// The job is queued again for any worker when its lease expires.
async fn takes_back_within_one_lease(world: &World) -> Outcome {
    world.started("j1").await?;
    world.pass(LEASE_MS);
    let back = world.broker.reclaim().await?;
    same!(back.requeued, ["j1"]);
    check!(back.ended.is_empty());
    let taken = world.claim("w2-b", &[world.queue()], 1).await?;
    same!(taken.jobs.len(), 1);
    Ok(())
}

/// The queued job has neither lease nor token.
async fn makes_the_job_nobodys(world: &World) -> Outcome {
    world.started("j1").await?;
    world.lose_all().await?;
    same!(world.status("j1").await?, "dispatched");
    same!(world.lease("j1").await?, None);
    same!(world.field("j1", "mw_token").await?, None);
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// A job of a group stays in its group.
async fn goes_back_to_the_queue_it_came_from(world: &World) -> Outcome {
    let queues = [world.queue_of("osis:group:io"), world.queue()];
    let mut job = world.job("j1")?;
    job.route.group = Some("io".parse()?);
    world.put_jobs(&[job]).await?;
    world.claim(WORKER, &queues, 1).await?;
    world.lose_all().await?;
    same!(world.list(&queues[0]).await?, ["j1"]);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// A crash of the worker is no failure of the job, and has its own count.
async fn counts_the_loss_and_not_the_attempt(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    for lost in 1..MAX_LOST {
        let claimed = world.take_one().await?;
        same!((claimed.job.attempt, claimed.job.lost), (1, lost - 1));
        world.lose_all().await?;
        let job = world.read("j1").await?;
        same!((job.attempt, job.lost), (0, lost));
    }
    Ok(())
}

/// Losses use no retry, and failures use no loss.
async fn a_loss_costs_no_retry(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    for _ in 0..2 {
        world.take_one().await?;
        world.lose_all().await?;
    }
    let claimed = world.take_one().await?;
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        meshwork_broker::Failed::Requeued
    );
    world.take_one().await?;
    world.lose_all().await?;
    let claimed = world.take_one().await?;
    same!((claimed.job.attempt, claimed.job.lost), (2, 3));
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        meshwork_broker::Failed::Failed
    );
    Ok(())
}

/// After its limit of losses a job ends with that reason.
async fn ends_what_loses_too_many_workers(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 100;
    world.put_jobs(&[job]).await?;
    for _ in 1..MAX_LOST {
        world.take_one().await?;
        same!(world.lose_all().await?.requeued, ["j1"]);
    }
    world.take_one().await?;
    let back = world.lose_all().await?;
    same!(back.ended, ["j1"]);
    check!(back.requeued.is_empty());
    let job = world.read("j1").await?;
    same!((job.status.as_str(), job.lost), ("error", MAX_LOST));
    check!(
        job.error
            .is_some_and(|error| error.starts_with("lost: 5 workers"))
    );
    same!(world.lease("j1").await?, None);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// A retry by hand resets both counts.
async fn a_retry_asked_for_forgives_the_losses(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    for _ in 0..MAX_LOST {
        world.take_one().await?;
        world.lose_all().await?;
    }
    world.broker.retry(&world.read("j1").await?).await?;
    let claimed = world.take_one().await?;
    same!((claimed.job.attempt, claimed.job.lost), (1, 0));
    same!(world.lose_all().await?.requeued, ["j1"]);
    Ok(())
}

/// One call reclaims 200 jobs; the next calls the rest.
async fn takes_back_a_bounded_number(world: &World) -> Outcome {
    let ids: Vec<_> = (0..450).map(|n| format!("j{n}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    world.put(&ids).await?;
    same!(world.take(450).await?.len(), 450);
    world.pass(LEASE_MS);
    let mut counts = Vec::new();
    for _ in 0..4 {
        counts.push(world.broker.reclaim().await?.requeued.len());
    }
    same!(counts, [200, 200, 50, 0]);
    same!(world.waiting().await?.len(), 450);
    same!(world.broker.running().await?, 0);
    Ok(())
}

/// Only expired leases are reclaimed, the earliest first.
async fn the_longest_overdue_first(world: &World) -> Outcome {
    for id in ["j1", "j2", "j3"] {
        world.started(id).await?;
        world.pass(1_000);
    }
    world.pass(LEASE_MS - 2_000);
    same!(world.broker.reclaim().await?.requeued, ["j1", "j2"]);
    same!(world.status("j3").await?, "started");
    Ok(())
}

/// A job that was deleted by hand leaves no lease, and is not created again in part.
async fn forgets_the_lease_of_a_job_that_is_gone(world: &World) -> Outcome {
    world.started("j1").await?;
    world.raw::<()>(&["DEL", &world.key("j1")]).await?;
    same!(world.lose_all().await?, Reclaimed::default());
    world
        .events_since("", &["j1 enqueue by  note osis", "j1 claim by w1-a note"])
        .await
}

/// A list in place of a job's record, and a job without a queue, do not block others.
async fn passes_over_what_is_no_job(world: &World) -> Outcome {
    for id in ["list", "lost", "j1"] {
        world.started(id).await?;
        world.pass(1);
    }
    world.raw::<()>(&["DEL", &world.key("list")]).await?;
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    world
        .raw::<()>(&["HDEL", &world.key("lost"), "mw_queue"])
        .await?;
    let back = world.lose_all().await?;
    same!(back.requeued, ["j1"]);
    check!(back.ended.is_empty());
    same!(world.list(&world.key("list")).await?, ["x"]);
    // Its record may come back.
    same!(world.broker.running().await?, 1);
    check!(world.lease("list").await?.is_some());
    Ok(())
}

/// A lease without a run, such as one written by hand, is removed, and the job stays unchanged.
async fn leaves_a_job_that_does_not_run(world: &World) -> Outcome {
    let claimed = world.started("ended").await?;
    world.finish(&claimed, "42").await?;
    world.put(&["waits"]).await?;
    let before = world.all().await?;
    world.pass(1);
    let lease = world.keys().lease();
    world
        .raw::<()>(&["ZADD", &lease, "1", "ended", "1", "waits"])
        .await?;
    same!(world.broker.reclaim().await?, Reclaimed::default());
    world.unchanged(&before).await
}

/// A call that is repeated after a broken connection reclaims no job twice.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    world.started("j1").await?;
    world.lose_all().await?;
    let before = world.all().await?;
    world.pass(1);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    world.unchanged(&before).await
}
