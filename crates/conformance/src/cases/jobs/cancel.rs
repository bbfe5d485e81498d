//! cancel: a job that waits or runs is stopped.

use meshwork_broker::{Cancelled, Completed};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::WORKER;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    stops_a_job_that_waits,
    stops_a_job_that_runs,
    a_stopped_job_does_not_run,
    the_stopped_run_is_thrown_away,
    an_ended_job_stays_as_it_is,
    a_job_that_is_not_there_does_not_appear,
    a_repeated_call_changes_nothing,
    leaves_the_other_jobs,
    stops_a_job_that_came_to_a_worker,
    stops_a_job_that_waits_for_its_retry,
    leaves_what_is_no_job,
    does_not_walk_a_long_queue,
];

/// The job ends in error with the reason, and its id is no longer queued.
async fn stops_a_job_that_waits(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.read("j1").await?;
    same!(
        world.broker.cancel(&job, "stopped", true).await?,
        Cancelled::Cancelled
    );
    let job = world.read("j1").await?;
    same!(job.status, "error");
    same!(job.error.as_deref(), Some("stopped"));
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// The job ends in error, and no worker holds it.
async fn stops_a_job_that_runs(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    same!(
        world.broker.cancel(&claimed.job, "stopped", true).await?,
        Cancelled::Cancelled
    );
    same!(world.status("j1").await?, "error");
    same!(world.lease("j1").await?, None);
    same!(world.field("j1", "mw_token").await?, None);
    same!(world.renew(WORKER, &[claimed]).await?, ["j1"]);
    Ok(())
}

/// The job does not run even if its id is still in a queue.
async fn a_stopped_job_does_not_run(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    world
        .broker
        .cancel(&world.read("j1").await?, "stopped", true)
        .await?;
    world.push("j1").await?;
    check!(world.take(1).await?.is_empty());
    same!(world.status("j1").await?, "error");
    Ok(())
}

/// Every report of its worker is refused.
async fn the_stopped_run_is_thrown_away(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.broker.cancel(&claimed.job, "stopped", true).await?;
    let before = world.all().await?;
    world.pass(1);
    same!(world.finish(&claimed, "42").await?, Completed::Stale);
    world.lose_all().await?;
    world.unchanged(&before).await
}

/// An ended job cannot be cancelled, whatever its end.
async fn an_ended_job_stays_as_it_is(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    let claimed = world.started("j2").await?;
    world.fail(&claimed, FailureKind::Script).await?;
    let before = world.all().await?;
    world.pass(1);
    for id in ["j1", "j2"] {
        let job = world.read(id).await?;
        same!(
            world.broker.cancel(&job, "stopped", true).await?,
            Cancelled::Ended
        );
    }
    world.unchanged(&before).await
}

/// Nothing is written for an id without a job.
async fn a_job_that_is_not_there_does_not_appear(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    same!(
        world.broker.cancel(&job, "stopped", true).await?,
        Cancelled::Missing
    );
    world
        .events_since("", &["j1 enqueue by  note osis", "j1 delete by  note"])
        .await
}

/// The first reason stays.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "stopped", true).await?;
    let before = world.all().await?;
    world.pass(1);
    same!(
        world.broker.cancel(&job, "again", true).await?,
        Cancelled::Ended
    );
    world.unchanged(&before).await
}

/// One of several jobs in a queue is cancelled.
async fn leaves_the_other_jobs(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    world
        .broker
        .cancel(&world.read("j2").await?, "stopped", true)
        .await?;
    same!(world.waiting().await?, ["j1", "j3"]);
    Ok(())
}

/// The id may be in a prefetch list: the job does not run from there either.
async fn stops_a_job_that_came_to_a_worker(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let (queue, feed) = (world.queue(), world.feed(WORKER));
    world
        .raw::<()>(&["LMOVE", &queue, &feed, "RIGHT", "LEFT"])
        .await?;
    world
        .broker
        .cancel(&world.read("j1").await?, "stopped", true)
        .await?;
    check!(world.take(1).await?.is_empty());
    same!(world.status("j1").await?, "error");
    Ok(())
}

/// Its id is removed from the queue from which it was claimed.
async fn stops_a_job_that_waits_for_its_retry(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 3;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    world
        .broker
        .cancel(&world.read("j1").await?, "stopped", true)
        .await?;
    check!(world.waiting().await?.is_empty());
    same!(
        world.field("j1", "error").await?.as_deref(),
        Some("stopped")
    );
    Ok(())
}

/// A list of an older client may have the name of a job.
async fn leaves_what_is_no_job(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    world.raw::<()>(&["LPUSH", &world.key("j1"), "x"]).await?;
    let before = world.all().await?;
    same!(
        world.broker.cancel(&job, "stopped", true).await?,
        Cancelled::Missing
    );
    world.unchanged(&before).await
}

/// In a queue with more than 10,000 ids the id stays, and a claim drops it: the walk would block the server.
async fn does_not_walk_a_long_queue(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    let queue = world.queue();
    let ghosts = vec!["ghost"; 9_999];
    let push: Vec<_> = ["LPUSH", &queue].into_iter().chain(ghosts).collect();
    world.raw::<()>(&push).await?;
    world
        .broker
        .cancel(&world.read("j1").await?, "stopped", true)
        .await?;
    same!(world.waiting().await?.len(), 10_001);
    check!(
        world
            .take(1)
            .await?
            .iter()
            .all(|claimed| claimed.job.id == "j2")
    );
    Ok(())
}
