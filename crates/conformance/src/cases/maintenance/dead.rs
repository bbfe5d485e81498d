//! Dead letters: jobs that failed for good, with the reason; and the list of all other ends, for retention.

use std::time::Duration;

use meshwork_broker::Failed;
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::harness::world::START;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    each_kind_of_failure_has_its_reason,
    what_was_stopped_is_no_dead_letter,
    what_kills_workers_is_poison,
    a_queue_that_is_no_list_is_a_reason,
    a_result_is_no_dead_letter,
    a_retry_takes_it_off_the_list,
    a_deletion_takes_it_off_the_list,
];

/// Returns the time at which a job became a dead letter, and the time of another end.
async fn listed(world: &World, id: &str) -> Result<(Option<u64>, Option<u64>), Failure> {
    let dead = world.raw(&["ZSCORE", &world.keys().dead(), id]).await?;
    let ended = world.raw(&["ZSCORE", &world.keys().ended(), id]).await?;
    Ok((dead, ended))
}

async fn reason(world: &World, id: &str) -> Result<Option<String>, Failure> {
    world.field(id, "mw_dead").await
}

/// The entry has the time of the failure.
async fn each_kind_of_failure_has_its_reason(world: &World) -> Outcome {
    for (kind, why) in [
        (FailureKind::Script, "failed"),
        (FailureKind::Timeout, "timeout"),
        (FailureKind::Limit, "limit"),
        (FailureKind::Permanent, "permanent"),
    ] {
        let claimed = world.started(why).await?;
        world.pass(7);
        let now = START + 7;
        same!(world.fail(&claimed, kind).await?, Failed::Failed);
        same!(reason(world, why).await?.as_deref(), Some(why));
        same!(listed(world, why).await?, (Some(now), None));
        world.at(START);
    }
    Ok(())
}

/// A cancelled job did not fail.
async fn what_was_stopped_is_no_dead_letter(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.fail(&claimed, FailureKind::Stopped).await?;
    let claimed = world.started("j2").await?;
    world.broker.cancel(&claimed.job, "stop", true).await?;
    let claimed = world.started("j3").await?;
    world.broker.cancel(&claimed.job, "stop", false).await?;
    world.fail(&claimed, FailureKind::Script).await?;
    for id in ["j1", "j2", "j3"] {
        same!((id, reason(world, id).await?), (id, None));
        same!((id, listed(world, id).await?), (id, (None, Some(START))));
    }
    Ok(())
}

/// The reason differs from a failure of the job's own.
async fn what_kills_workers_is_poison(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    for _ in 0..MAX_LOST {
        same!(reason(world, "j1").await?, None);
        world.take_one().await?;
        world.lose_all().await?;
    }
    same!(reason(world, "j1").await?.as_deref(), Some("poison"));
    check!(listed(world, "j1").await?.0.is_some());
    Ok(())
}

/// Every way of a requeue gives a dead letter with that reason, and the verb reports the end.
async fn a_queue_that_is_no_list_is_a_reason(world: &World) -> Outcome {
    let mut jobs = Vec::new();
    for id in ["fails", "freed", "lost"] {
        let mut job = world.job(id)?;
        (job.retries, job.reply) = (3, true);
        world.put_jobs(&[job]).await?;
        jobs.push(world.take_one().await?);
    }
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    let said = world
        .broker
        .fail(&jobs[0], &failure, b"", b"", Duration::ZERO);
    same!(said.await?, Failed::Failed);
    world.broker.release(&jobs[1]).await?;
    let back = world.lose_all().await?;
    same!(
        (back.requeued.len(), back.ended),
        (0, vec!["lost".to_owned()])
    );
    let why = format!("the key of its queue, {}, is no list", world.queue());
    for id in ["fails", "freed", "lost"] {
        same!(
            (id, reason(world, id).await?),
            (id, Some("queue".to_owned()))
        );
        same!(world.list(&world.reply(id)).await?, [why.as_str()]);
        same!(world.lease(id).await?, None);
    }
    Ok(())
}

/// The entry has the time of the end.
async fn a_result_is_no_dead_letter(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.pass(7);
    world.finish(&claimed, "42").await?;
    same!(listed(world, "j1").await?, (None, Some(START + 7)));
    Ok(())
}

/// The job is in neither list.
async fn a_retry_takes_it_off_the_list(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    let claimed = world.started("j2").await?;
    world.finish(&claimed, "42").await?;
    for id in ["j1", "j2"] {
        world.broker.retry(&world.read(id).await?).await?;
        same!((id, reason(world, id).await?), (id, None));
        same!((id, listed(world, id).await?), (id, (None, None)));
    }
    Ok(())
}

/// The job no longer exists.
async fn a_deletion_takes_it_off_the_list(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    let claimed = world.started("j2").await?;
    world.finish(&claimed, "42").await?;
    for id in ["j1", "j2"] {
        world.broker.delete(&world.read(id).await?).await?;
        same!((id, listed(world, id).await?), (id, (None, None)));
    }
    Ok(())
}
