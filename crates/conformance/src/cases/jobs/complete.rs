//! finish: the worker with the lease writes a result once.

use std::time::Duration;

use meshwork_broker::Completed;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::LEASE_MS;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    writes_the_result,
    keeps_any_bytes,
    an_empty_result_is_a_result,
    ends_the_lease,
    keeps_the_ends_of_the_logs,
    forgets_the_failure_before,
    takes_a_result_after_the_lease_ended_untaken,
    refuses_another_token,
    a_repeated_call_changes_nothing,
    a_failure_after_it_changes_nothing,
];

/// The job is finished, and its output is in the record.
async fn writes_the_result(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    let job = world.read("j1").await?;
    same!(job.status, "finished");
    same!(job.output.as_deref(), Some(&b"42"[..]));
    same!(job.error, None);
    Ok(())
}

/// A result may have any bytes.
async fn keeps_any_bytes(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let bytes: Vec<u8> = (0..=255).collect();
    world
        .broker
        .complete(&claimed, &bytes, &bytes, &bytes)
        .await?;
    let job = world.read("j1").await?;
    same!(job.output.as_ref(), Some(&bytes));
    same!((&job.stdout, &job.stderr), (&bytes, &bytes));
    Ok(())
}

/// A script may return nothing.
async fn an_empty_result_is_a_result(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    same!(world.finish(&claimed, "").await?, Completed::Finished);
    let job = world.read("j1").await?;
    same!(job.output.as_deref(), Some(&b""[..]));
    same!(job.status, "finished");
    Ok(())
}

/// An ended job has no worker.
async fn ends_the_lease(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    same!(world.lease("j1").await?, None);
    same!(world.broker.running().await?, 0);
    let before = world.all().await?;
    same!(
        world.lose_all().await?,
        meshwork_broker::Reclaimed::default()
    );
    world.unchanged(&before).await
}

/// The end of the run's log is stored beside the result, without empty fields.
async fn keeps_the_ends_of_the_logs(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.broker.complete(&claimed, b"42", b"out", b"").await?;
    same!(world.read("j1").await?.stdout, b"out");
    same!(world.field("j1", "mw_stderr").await?, None);
    let claimed = world.started("j2").await?;
    world.broker.complete(&claimed, b"42", b"", b"err").await?;
    same!(world.read("j2").await?.stderr, b"err");
    same!(world.field("j2", "mw_stdout").await?, None);
    Ok(())
}

/// A job that failed first and then succeeded has no error.
async fn forgets_the_failure_before(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let mut failure = meshwork_model::outcome::Failure::new(FailureKind::Script, "boom");
    failure.traceback = Some("line 1".to_owned());
    world
        .broker
        .fail(&claimed, &failure, b"o", b"e", Duration::ZERO)
        .await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    let record = world.record("j1").await?;
    for field in ["error", "mw_traceback", "mw_stdout", "mw_stderr"] {
        check!(!record.contains_key(field));
    }
    Ok(())
}

/// An expired lease that was not reclaimed is still valid, so that the run is not wasted.
async fn takes_a_result_after_the_lease_ended_untaken(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.pass(LEASE_MS * 10);
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    check!(world.broker.reclaim().await?.requeued.is_empty());
    same!(world.status("j1").await?, "finished");
    Ok(())
}

/// Without the current token nothing is written.
async fn refuses_another_token(world: &World) -> Outcome {
    let mut claimed = world.started("j1").await?;
    claimed.token = "t0".to_owned();
    let before = world.all().await?;
    world.pass(1);
    same!(world.finish(&claimed, "42").await?, Completed::Stale);
    world.unchanged(&before).await
}

/// A report that is repeated after a broken connection gets the same answer, and writes nothing.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    let before = world.all().await?;
    world.pass(1);
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    world.unchanged(&before).await
}

/// Nor does a failure that the same worker reports afterwards.
async fn a_failure_after_it_changes_nothing(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    let before = world.all().await?;
    world.pass(1);
    let said = world.fail(&claimed, FailureKind::Script).await?;
    same!(said, meshwork_broker::Failed::Stale);
    world.unchanged(&before).await
}
