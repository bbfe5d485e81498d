//! retry: an ended job runs again by hand.

use meshwork_broker::Retried;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::legacy_worker::{migrate, old, write};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    runs_a_failed_job_again,
    runs_a_finished_job_again,
    begins_from_nothing,
    has_all_its_runs_again,
    goes_to_the_end_of_its_queue,
    leaves_a_job_that_waits_or_runs,
    a_job_that_is_not_there_does_not_appear,
    a_job_that_says_no_queue_stays,
    leaves_what_is_no_job,
    a_lock_of_the_run_before_locks_nothing,
];

async fn ended(world: &World, kind: Option<FailureKind>) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    match kind {
        Some(kind) => drop(world.fail(&claimed, kind).await?),
        None => drop(world.finish(&claimed, "42").await?),
    }
    Ok(())
}

/// The job waits again, runs, and may have another end.
async fn runs_a_failed_job_again(world: &World) -> Outcome {
    ended(world, Some(FailureKind::Permanent)).await?;
    same!(
        world.broker.retry(&world.read("j1").await?).await?,
        Retried::Queued
    );
    same!(world.status("j1").await?, "dispatched");
    let claimed = world.take_one().await?;
    world.finish(&claimed, "43").await?;
    same!(world.read("j1").await?.output.as_deref(), Some(&b"43"[..]));
    Ok(())
}

/// A job can also be retried after a success.
async fn runs_a_finished_job_again(world: &World) -> Outcome {
    ended(world, None).await?;
    same!(
        world.broker.retry(&world.read("j1").await?).await?,
        Retried::Queued
    );
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// Neither the record nor the reply list keeps a trace of the last end.
async fn begins_from_nothing(world: &World) -> Outcome {
    ended(world, None).await?;
    world
        .raw::<()>(&["HSET", &world.key("j1"), "error", "e", "mw_lost", "2"])
        .await?;
    world.broker.retry(&world.read("j1").await?).await?;
    let record = world.record("j1").await?;
    for field in [
        "output",
        "error",
        "mw_traceback",
        "mw_stdout",
        "mw_stderr",
        "mw_token",
        "mw_attempt",
        "mw_lost",
    ] {
        check!(!record.contains_key(field));
    }
    check!(world.list(&world.reply("j1")).await?.is_empty());
    Ok(())
}

/// Runs and retries count from the beginning.
async fn has_all_its_runs_again(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    for _ in 0..2 {
        for attempt in 1..=2 {
            let claimed = world.take_one().await?;
            same!(claimed.job.attempt, attempt);
            world.fail(&claimed, FailureKind::Script).await?;
        }
        same!(world.status("j1").await?, "error");
        world.broker.retry(&world.read("j1").await?).await?;
    }
    Ok(())
}

/// Jobs that already wait run before it.
async fn goes_to_the_end_of_its_queue(world: &World) -> Outcome {
    ended(world, None).await?;
    world.put(&["j2", "j3"]).await?;
    world.broker.retry(&world.read("j1").await?).await?;
    same!(world.waiting().await?, ["j2", "j3", "j1"]);
    Ok(())
}

/// A job that has not ended is not queued twice, so a repeated call is safe.
async fn leaves_a_job_that_waits_or_runs(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    world.take_one().await?;
    let before = world.all().await?;
    world.pass(1);
    for id in ["j1", "j2"] {
        let job = world.read(id).await?;
        same!(world.broker.retry(&job).await?, Retried::Unfinished);
    }
    world.unchanged(&before).await
}

/// Nothing is written for an id without a job.
async fn a_job_that_is_not_there_does_not_appear(world: &World) -> Outcome {
    ended(world, None).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    same!(world.broker.retry(&job).await?, Retried::Missing);
    world
        .events_since(
            "",
            &[
                "j1 enqueue by  note osis",
                "j1 claim by w1-a note",
                "j1 finished by w1-a note",
                "j1 delete by  note",
            ],
        )
        .await
}

/// A foreign record without a queue cannot be queued.
async fn a_job_that_says_no_queue_stays(world: &World) -> Outcome {
    world
        .put_foreign("j1", &[("script", "1"), ("status", "error")])
        .await?;
    let before = world.all().await?;
    let job = world.read("j1").await?;
    same!(world.broker.retry(&job).await?, Retried::Missing);
    world.unchanged(&before).await
}

/// A list of an older client may have the name of a job.
async fn leaves_what_is_no_job(world: &World) -> Outcome {
    ended(world, None).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    world.raw::<()>(&["LPUSH", &world.key("j1"), "x"]).await?;
    let before = world.all().await?;
    same!(world.broker.retry(&job).await?, Retried::Missing);
    world.unchanged(&before).await
}

/// An old worker took the id and ended the job; the migration is over before the next run.
async fn a_lock_of_the_run_before_locks_nothing(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    let config = world.keys().config();
    world
        .raw::<()>(&["DEL", &old(world), &world.queue(), &config])
        .await?;
    write(world, "j1", &["status", "error", "mw_seen", "1"]).await?;
    world.broker.retry(&world.read("j1").await?).await?;
    same!(world.field("j1", "mw_seen").await?, None);
    same!(world.take_one().await?.job.id, "j1");
    Ok(())
}
