//! fail: a run failed; the job runs again while it has a retry left, or else ends in error.

use std::time::Duration;

use meshwork_broker::Failed;
use meshwork_model::job::limits::{MAX_RETRIES, MAX_SNOOZED, MAX_SNOOZES};
use meshwork_model::outcome::{Failure, FailureKind};

use crate::cases::harness::options::promote;
use crate::cases::harness::world::Got;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    retries_n_means_n_plus_one_runs,
    a_timeout_is_retried,
    what_cannot_succeed_is_not_retried,
    a_job_without_retries_ends,
    ends_in_error_with_the_message,
    tells_of_the_last_run_only,
    a_requeued_job_is_nobodys,
    an_ended_job_has_no_lease,
    refuses_another_token,
    a_last_failure_said_twice_changes_nothing,
    a_requeue_said_twice_changes_nothing,
    a_result_after_it_changes_nothing,
    reads_odd_retries_as_none,
    bounds_absurd_retries,
    a_snooze_uses_no_attempt,
    a_snooze_waits_for_its_time,
    snoozes_are_counted_and_bounded,
    snoozes_end_after_a_week,
    a_snoozed_job_that_is_to_stop_ends,
    a_discarded_job_is_no_dead_letter,
];

/// Enqueues a job with this number of retries.
async fn put(world: &World, retries: u32) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = retries;
    world.put_jobs(&[job]).await
}

/// A job with N retries runs exactly N + 1 times.
async fn retries_n_means_n_plus_one_runs(world: &World) -> Outcome {
    for retries in [0, 1, 2, 5] {
        put(world, retries).await?;
        for _ in 0..retries {
            let claimed = world.take_one().await?;
            let said = world.fail(&claimed, FailureKind::Script).await?;
            same!(said, Failed::Requeued);
            same!(world.status("j1").await?, "dispatched");
        }
        let claimed = world.take_one().await?;
        same!(claimed.job.attempt, retries + 1);
        let said = world.fail(&claimed, FailureKind::Script).await?;
        same!(said, Failed::Failed);
        check!(world.waiting().await?.is_empty());
        world.broker.delete(&world.read("j1").await?).await?;
    }
    Ok(())
}

/// The next run may be faster.
async fn a_timeout_is_retried(world: &World) -> Outcome {
    put(world, 1).await?;
    let claimed = world.take_one().await?;
    let said = world
        .broker
        .fail(&claimed, &Failure::timeout(), b"", b"", Duration::ZERO)
        .await?;
    same!(said, Failed::Requeued);
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// A script that cannot be parsed never succeeds: the job ends at once.
async fn what_cannot_succeed_is_not_retried(world: &World) -> Outcome {
    put(world, 5).await?;
    let claimed = world.take_one().await?;
    let said = world.fail(&claimed, FailureKind::Permanent).await?;
    same!(said, Failed::Failed);
    same!(world.status("j1").await?, "error");
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// Without retries the first failure is the last.
async fn a_job_without_retries_ends(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let said = world.fail(&claimed, FailureKind::Script).await?;
    same!(said, Failed::Failed);
    same!(world.status("j1").await?, "error");
    Ok(())
}

/// The record has the error, and no output.
async fn ends_in_error_with_the_message(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let mut failure = Failure::new(FailureKind::Script, "ValueError: ä");
    failure.traceback = Some("line 1\nline 2".to_owned());
    world
        .broker
        .fail(&claimed, &failure, b"\x00out", b"err\xff", Duration::ZERO)
        .await?;
    let job = world.read("j1").await?;
    same!(job.status, "error");
    same!(job.error.as_deref(), Some("ValueError: ä"));
    same!(job.traceback.as_deref(), Some("line 1\nline 2"));
    same!(job.stdout, b"\x00out");
    same!(job.stderr, b"err\xff");
    same!(job.output, None);
    Ok(())
}

/// The fields of an earlier run are replaced, or removed.
async fn tells_of_the_last_run_only(world: &World) -> Outcome {
    put(world, 1).await?;
    let claimed = world.take_one().await?;
    let mut failure = Failure::new(FailureKind::Script, "first");
    failure.traceback = Some("line 1".to_owned());
    world
        .broker
        .fail(&claimed, &failure, b"o", b"e", Duration::ZERO)
        .await?;
    let job = world.read("j1").await?;
    same!(job.error.as_deref(), Some("first"));
    same!((job.stdout, job.stderr), (b"o".to_vec(), b"e".to_vec()));
    let claimed = world.take_one().await?;
    let failure = Failure::new(FailureKind::Script, "second");
    world
        .broker
        .fail(&claimed, &failure, b"", b"", Duration::ZERO)
        .await?;
    let record = world.record("j1").await?;
    same!(record.get("error").map(String::as_str), Some("second"));
    for field in ["mw_traceback", "mw_stdout", "mw_stderr"] {
        check!(!record.contains_key(field));
    }
    Ok(())
}

/// While a job waits for its retry it has neither lease nor token.
async fn a_requeued_job_is_nobodys(world: &World) -> Outcome {
    put(world, 1).await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(world.lease("j1").await?, None);
    same!(world.field("j1", "mw_token").await?, None);
    same!(
        world.lose_all().await?,
        meshwork_broker::Reclaimed::default()
    );
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// An ended job has no worker either.
async fn an_ended_job_has_no_lease(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(world.lease("j1").await?, None);
    Ok(())
}

/// Without the current token nothing is written.
async fn refuses_another_token(world: &World) -> Outcome {
    put(world, 1).await?;
    let mut claimed = world.take_one().await?;
    claimed.token = "t0".to_owned();
    let before = world.all().await?;
    world.pass(1);
    for kind in [FailureKind::Script, FailureKind::Permanent] {
        same!(world.fail(&claimed, kind).await?, Failed::Stale);
        world.unchanged(&before).await?;
    }
    Ok(())
}

/// A report that is repeated after a broken connection gets the same answer, and writes nothing.
async fn a_last_failure_said_twice_changes_nothing(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Failed
    );
    let before = world.all().await?;
    world.pass(1);
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Failed
    );
    world.unchanged(&before).await
}

/// The requeued job no longer belongs to the worker: the repeated report is refused, and the job is queued once.
async fn a_requeue_said_twice_changes_nothing(world: &World) -> Outcome {
    put(world, 5).await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    let before = world.all().await?;
    world.pass(1);
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Stale
    );
    world.unchanged(&before).await
}

/// A result that the same worker reports after the failure is refused.
async fn a_result_after_it_changes_nothing(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.fail(&claimed, FailureKind::Script).await?;
    let before = world.all().await?;
    world.pass(1);
    same!(
        world.finish(&claimed, "42").await?,
        meshwork_broker::Completed::Stale
    );
    world.unchanged(&before).await
}

/// An invalid number of retries means no retry.
async fn reads_odd_retries_as_none(world: &World) -> Outcome {
    for retries in ["", "many", "-1", "nan", "1 2"] {
        world
            .put_foreign("j1", &[("script", "1"), ("retries", retries)])
            .await?;
        let claimed = world.take_one().await?;
        let said = world.fail(&claimed, FailureKind::Script).await?;
        same!((retries, said), (retries, Failed::Failed));
        world.broker.delete(&world.read("j1").await?).await?;
    }
    Ok(())
}

/// A foreign record with too many retries gets the greatest number that a Meshwork job may have.
async fn bounds_absurd_retries(world: &World) -> Outcome {
    for retries in ["1000000", "inf", "1e9"] {
        let most = MAX_RETRIES.to_string();
        world
            .put_foreign(
                "j1",
                &[("script", "1"), ("retries", retries), ("mw_attempt", &most)],
            )
            .await?;
        let claimed = world.take_one().await?;
        same!(claimed.job.attempt, MAX_RETRIES + 1);
        let said = world.fail(&claimed, FailureKind::Script).await?;
        same!((retries, said), (retries, Failed::Failed));
        world.broker.delete(&world.read("j1").await?).await?;
    }
    Ok(())
}

/// Claims and snoozes a job.
async fn snooze(world: &World, pause: Duration) -> Got<Failed> {
    let claimed = world.take_one().await?;
    let failure = Failure::new(FailureKind::Snoozed, "later");
    let said = world.broker.fail(&claimed, &failure, b"out", b"err", pause);
    Ok(said.await?)
}

/// The record is as if the run had never begun; readers of Hero's format see a waiting job.
async fn a_snooze_uses_no_attempt(world: &World) -> Outcome {
    put(world, 0).await?;
    let key = world.key("j1");
    for _ in 0..3 {
        // Of an earlier attempt.
        world
            .raw::<i64>(&[
                "HSET",
                &key,
                "error",
                "no",
                "mw_stdout",
                "a",
                "mw_stderr",
                "b",
            ])
            .await?;
        same!(snooze(world, Duration::ZERO).await?, Failed::Requeued);
        same!(world.status("j1").await?, "dispatched");
        for field in ["error", "mw_stdout", "mw_stderr", "mw_token"] {
            same!((field, world.field("j1", field).await?), (field, None));
        }
    }
    same!(world.field("j1", "mw_snoozes").await?.as_deref(), Some("3"));
    let claimed = world.take_one().await?;
    same!((claimed.job.attempt, claimed.job.snoozes), (1, 3));
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Failed
    );
    Ok(())
}

/// No worker gets the job before its time, and it has no lease.
async fn a_snooze_waits_for_its_time(world: &World) -> Outcome {
    put(world, 0).await?;
    let claimed = world.take_one().await?;
    let failure = Failure::new(FailureKind::Snoozed, "later");
    let pause = Duration::from_secs(5);
    world
        .broker
        .fail(&claimed, &failure, b"", b"", pause)
        .await?;
    same!(world.lease("j1").await?, None);
    let before = world.all().await?;
    let again = world
        .broker
        .fail(&claimed, &failure, b"", b"", pause)
        .await?;
    same!(again, Failed::Stale);
    world.unchanged(&before).await?;
    check!(world.waiting().await?.is_empty());
    world.pass(4_999);
    same!(promote(world).await?, (0, Some(1)));
    world.pass(1);
    same!(promote(world).await?, (1, None));
    same!(world.take_one().await?.job.attempt, 1);
    Ok(())
}

/// After the last snooze the job is a dead letter with that reason; a retry by hand resets the count.
async fn snoozes_are_counted_and_bounded(world: &World) -> Outcome {
    put(world, 5).await?;
    snooze(world, Duration::ZERO).await?;
    let key = world.key("j1");
    let most = MAX_SNOOZES.to_string();
    world
        .raw::<i64>(&["HSET", &key, "mw_snoozes", &most])
        .await?;
    same!(snooze(world, Duration::ZERO).await?, Failed::Failed);
    same!(world.status("j1").await?, "error");
    let error = world.field("j1", "error").await?.unwrap_or_default();
    check!(error.contains("1000 times") && error.ends_with(": later"));
    same!(world.field("j1", "mw_dead").await?.is_some(), true);
    world.broker.retry(&world.read("j1").await?).await?;
    same!(world.field("j1", "mw_snoozes").await?, None);
    same!(snooze(world, Duration::ZERO).await?, Failed::Requeued);
    Ok(())
}

/// The time counts from the first snooze to the end of the last.
async fn snoozes_end_after_a_week(world: &World) -> Outcome {
    put(world, 0).await?;
    snooze(world, Duration::ZERO).await?;
    let week = MAX_SNOOZED.as_millis() as u64;
    world.pass(week - 1_000);
    same!(
        snooze(world, Duration::from_secs(1)).await?,
        Failed::Requeued
    );
    world.pass(1_000);
    promote(world).await?;
    same!(
        snooze(world, Duration::from_millis(1)).await?,
        Failed::Failed
    );
    Ok(())
}

/// A stop request has priority over the snooze.
async fn a_snoozed_job_that_is_to_stop_ends(world: &World) -> Outcome {
    put(world, 0).await?;
    let claimed = world.take_one().await?;
    let key = world.key("j1");
    world
        .raw::<i64>(&["HSET", &key, "mw_stop", "stopped"])
        .await?;
    let failure = Failure::new(FailureKind::Snoozed, "later");
    let said = world
        .broker
        .fail(&claimed, &failure, b"", b"", Duration::ZERO);
    same!(said.await?, Failed::Failed);
    same!(world.status("j1").await?, "error");
    Ok(())
}

/// The job ends at once, with any number of retries left.
async fn a_discarded_job_is_no_dead_letter(world: &World) -> Outcome {
    put(world, 5).await?;
    let claimed = world.take_one().await?;
    same!(
        world.fail(&claimed, FailureKind::Discarded).await?,
        Failed::Failed
    );
    same!(world.status("j1").await?, "error");
    same!(world.field("j1", "mw_dead").await?, None);
    Ok(())
}
