//! release: a worker that shuts down returns its unfinished jobs, without a counted attempt.

use meshwork_broker::Released;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::WORKER;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    costs_no_attempt,
    costs_no_retry,
    counts_no_loss,
    makes_the_job_nobodys,
    goes_back_to_the_queue_it_came_from,
    another_worker_takes_it,
    refuses_another_token,
    a_repeated_call_changes_nothing,
];

/// The run that did not happen is not counted.
async fn costs_no_attempt(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    for _ in 0..5 {
        let claimed = world.take_one().await?;
        same!(claimed.job.attempt, 1);
        same!(world.broker.release(&claimed).await?, Released::Released);
        same!(world.read("j1").await?.attempt, 0);
    }
    Ok(())
}

/// All retries are left afterwards.
async fn costs_no_retry(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    for _ in 0..3 {
        let claimed = world.take_one().await?;
        same!(claimed.job.attempt, 2);
        world.broker.release(&claimed).await?;
    }
    let claimed = world.take_one().await?;
    same!(claimed.job.attempt, 2);
    Ok(())
}

/// Nor does it count as a loss: a job may be released any number of times.
async fn counts_no_loss(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    for _ in 0..10 {
        let claimed = world.take_one().await?;
        world.broker.release(&claimed).await?;
    }
    let job = world.read("j1").await?;
    same!((job.lost, job.status.as_str()), (0, "dispatched"));
    Ok(())
}

/// The queued job has neither lease nor token.
async fn makes_the_job_nobodys(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.broker.release(&claimed).await?;
    same!(world.status("j1").await?, "dispatched");
    same!(world.lease("j1").await?, None);
    same!(world.field("j1", "mw_token").await?, None);
    let before = world.all().await?;
    world.lose_all().await?;
    world.unchanged(&before).await
}

/// A job of a group stays in its group.
async fn goes_back_to_the_queue_it_came_from(world: &World) -> Outcome {
    let queues = [world.queue_of("osis:group:io"), world.queue()];
    let mut job = world.job("j1")?;
    job.route.group = Some("io".parse()?);
    world.put_jobs(&[job]).await?;
    let taken = world.claim(WORKER, &queues, 1).await?;
    for claimed in &taken.jobs {
        world.broker.release(claimed).await?;
    }
    same!(world.list(&queues[0]).await?, ["j1"]);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// The next worker that claims it runs it, and reports of the earlier one are refused.
async fn another_worker_takes_it(world: &World) -> Outcome {
    let before = world.started("j1").await?;
    world.broker.release(&before).await?;
    let taken = world.claim("w2-b", &[world.queue()], 1).await?;
    same!(taken.jobs.len(), 1);
    same!(world.renew(WORKER, &[before]).await?, ["j1"]);
    check!(world.renew("w2-b", &taken.jobs).await?.is_empty());
    Ok(())
}

/// Without the current token nothing is written.
async fn refuses_another_token(world: &World) -> Outcome {
    let mut claimed = world.started("j1").await?;
    claimed.token = "t0".to_owned();
    let before = world.all().await?;
    world.pass(1);
    same!(world.broker.release(&claimed).await?, Released::Stale);
    world.unchanged(&before).await
}

/// A call that is repeated after a broken connection does not queue the job twice.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.broker.release(&claimed).await?;
    let before = world.all().await?;
    world.pass(1);
    same!(world.broker.release(&claimed).await?, Released::Stale);
    world.unchanged(&before).await
}
