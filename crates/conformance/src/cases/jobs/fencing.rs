//! Fencing: a worker that has lost a job in any way can send any report; nothing changes.

use meshwork_broker::{Claimed, Completed, Failed, Released};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::WORKER;
use crate::cases::{Failure, Outcome, World, cases, same};

cases![
    after_the_job_was_taken_back,
    while_another_worker_has_it,
    after_another_worker_ended_it,
    after_the_job_was_stopped,
    after_the_job_was_deleted,
    after_its_id_was_used_again,
    after_it_was_asked_for_again,
    after_it_was_handed_back,
    after_it_was_requeued,
    while_the_same_worker_has_it_again,
];

/// Sends every report with an old claim; checks the answers, and that nothing changed.
async fn refused(world: &World, old: &Claimed) -> Outcome {
    let before = world.all().await?;
    let lease = world.lease(&old.job.id).await?;
    world.pass(1);
    same!(world.finish(old, "stale").await?, Completed::Stale);
    for kind in [
        FailureKind::Script,
        FailureKind::Timeout,
        FailureKind::Permanent,
    ] {
        same!(world.fail(old, kind).await?, Failed::Stale);
    }
    same!(world.broker.release(old).await?, Released::Stale);
    world.unchanged(&before).await?;
    let gone = world.renew(WORKER, std::slice::from_ref(old)).await?;
    same!(gone, [old.job.id.as_str()]);
    same!(world.lease(&old.job.id).await?, lease);
    // The renewal itself writes the registration, and nothing else.
    world
        .raw::<()>(&["DEL", &world.keys().prefetch_registry()])
        .await?;
    world.unchanged(&before).await
}

/// Starts a job with retries and a reply.
async fn running(world: &World) -> Result<Claimed, Failure> {
    let mut job = world.job("j1")?;
    (job.retries, job.reply) = (3, true);
    world.put_jobs(&[job]).await?;
    world.take_one().await
}

async fn taken_over(world: &World) -> Result<(Claimed, Claimed), Failure> {
    let old = running(world).await?;
    world.lose_all().await?;
    let mut taken = world.claim("w2-b", &[world.queue()], 1).await?;
    let new = taken.jobs.pop();
    let new = new.ok_or_else(|| Failure::new("it was not claimed again"))?;
    Ok((old, new))
}

/// The lease expired, and the job waits.
async fn after_the_job_was_taken_back(world: &World) -> Outcome {
    let old = running(world).await?;
    world.lose_all().await?;
    refused(world, &old).await
}

/// The job runs again elsewhere.
async fn while_another_worker_has_it(world: &World) -> Outcome {
    let (old, new) = taken_over(world).await?;
    refused(world, &old).await?;
    same!(world.finish(&new, "42").await?, Completed::Finished);
    Ok(())
}

/// The job has ended there, with a success or a failure.
async fn after_another_worker_ended_it(world: &World) -> Outcome {
    let (old, new) = taken_over(world).await?;
    world.finish(&new, "42").await?;
    refused(world, &old).await?;
    world.broker.delete(&new.job).await?;
    let (old, new) = taken_over(world).await?;
    world.fail(&new, FailureKind::Permanent).await?;
    refused(world, &old).await
}

/// The job was cancelled.
async fn after_the_job_was_stopped(world: &World) -> Outcome {
    let old = running(world).await?;
    world.broker.cancel(&old.job, "stopped", true).await?;
    refused(world, &old).await
}

/// The job no longer exists.
async fn after_the_job_was_deleted(world: &World) -> Outcome {
    let old = running(world).await?;
    world.broker.cancel(&old.job, "stopped", true).await?;
    world.broker.delete(&old.job).await?;
    refused(world, &old).await?;
    let events = [
        "j1 enqueue by  note osis",
        "j1 claim by w1-a note",
        "j1 error by  note",
        "j1 delete by  note",
    ];
    world.events_since("", &events).await
}

/// Another job has its id now.
async fn after_its_id_was_used_again(world: &World) -> Outcome {
    let old = running(world).await?;
    world.broker.cancel(&old.job, "stopped", true).await?;
    world.broker.delete(&old.job).await?;
    world.put(&["j1"]).await?;
    refused(world, &old).await
}

/// The job had ended, and was retried by hand.
async fn after_it_was_asked_for_again(world: &World) -> Outcome {
    let old = running(world).await?;
    world.finish(&old, "42").await?;
    world.broker.retry(&world.read("j1").await?).await?;
    refused(world, &old).await?;
    let new = world.take_one().await?;
    refused(world, &old).await?;
    same!(world.finish(&new, "43").await?, Completed::Finished);
    Ok(())
}

/// The worker itself released the job.
async fn after_it_was_handed_back(world: &World) -> Outcome {
    let old = running(world).await?;
    world.broker.release(&old).await?;
    refused(world, &old).await
}

/// The worker itself reported a failure.
async fn after_it_was_requeued(world: &World) -> Outcome {
    let old = running(world).await?;
    world.fail(&old, FailureKind::Script).await?;
    refused(world, &old).await
}

/// The token counts, not the worker's name.
async fn while_the_same_worker_has_it_again(world: &World) -> Outcome {
    let old = running(world).await?;
    world.lose_all().await?;
    let new = world.take_one().await?;
    refused(world, &old).await?;
    same!(world.finish(&new, "42").await?, Completed::Finished);
    Ok(())
}
