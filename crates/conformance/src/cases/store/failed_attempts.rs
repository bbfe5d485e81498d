//! fail and reclaim: the record keeps the last attempts that failed or were lost.

use std::time::Duration;

use meshwork_model::job::{AttemptOutcome, FailedAttempt};
use meshwork_model::outcome::{Failure, FailureKind};

use crate::cases::harness::world::{Got, LEASE_MS, WORKER};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_failed_attempt_is_kept,
    the_last_ten_are_kept,
    a_lost_attempt_is_kept,
    a_cancelled_attempt_says_so,
    a_job_that_succeeds_at_once_keeps_nothing,
    a_success_keeps_the_failures_before,
    a_retry_by_hand_keeps_them,
    errors_are_cut_and_written_as_json,
    an_odd_record_keeps_what_can_be_read,
    a_large_field_of_others_is_cut,
];

const FIELD: &str = "mw_failed_attempts";

async fn fails(world: &World, error: &str) -> Outcome {
    let claimed = world.take_one().await?;
    world.pass(7);
    let failure = Failure::new(FailureKind::Script, error);
    let broker = &world.broker;
    broker
        .fail(&claimed, &failure, b"", b"", Duration::ZERO)
        .await?;
    Ok(())
}

async fn kept(world: &World) -> Got<Vec<FailedAttempt>> {
    Ok(world.read("j1").await?.failed_attempts)
}

async fn put(world: &World, retries: u32) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = retries;
    world.put_jobs(&[job]).await
}

/// The attempt has its number, times, worker and error.
async fn a_failed_attempt_is_kept(world: &World) -> Outcome {
    put(world, 1).await?;
    let started = world.now();
    fails(world, "ValueError: ä").await?;
    let first = FailedAttempt {
        number: Some(1),
        started_ms: Some(started),
        ended_ms: started + 7,
        worker: WORKER.to_owned(),
        outcome: AttemptOutcome::Failed,
        error: "ValueError: ä".to_owned(),
    };
    same!(kept(world).await?, vec![first.clone()]);
    fails(world, "second").await?;
    let all = kept(world).await?;
    same!(
        (&all[0], all[1].number, &*all[1].error),
        (&first, Some(2), "second")
    );
    Ok(())
}

/// More than ten are not kept.
async fn the_last_ten_are_kept(world: &World) -> Outcome {
    put(world, 12).await?;
    for number in 1..=12 {
        fails(world, &format!("error {number}")).await?;
        let all = kept(world).await?;
        let numbers: Vec<_> = all.iter().map(|it| it.number.unwrap_or_default()).collect();
        let first = if number > 10 { number - 9 } else { 1 };
        same!(numbers, (first..=number).collect::<Vec<_>>());
        same!(
            all.last().map(|it| it.error.clone()),
            Some(format!("error {number}"))
        );
    }
    Ok(())
}

/// A lost attempt does not count, and has no error.
async fn a_lost_attempt_is_kept(world: &World) -> Outcome {
    put(world, 1).await?;
    world.take_one().await?;
    let started = world.now();
    world.pass(LEASE_MS);
    world.broker.reclaim().await?;
    fails(world, "e").await?;
    let all = kept(world).await?;
    let words: Vec<_> = all
        .iter()
        .map(|it| (it.number, it.outcome.as_str(), &*it.error))
        .collect();
    same!(words, vec![(Some(1), "lost", ""), (Some(1), "failed", "e")]);
    same!(
        (all[0].started_ms, all[0].ended_ms),
        (Some(started), started + LEASE_MS)
    );
    same!(all[0].worker, WORKER);
    Ok(())
}

/// A cancellation is no failure of the job.
async fn a_cancelled_attempt_says_so(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "enough", false).await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(kept(world).await?[0].outcome, AttemptOutcome::Cancelled);
    Ok(())
}

/// Most jobs never fail, and cost no more than before.
async fn a_job_that_succeeds_at_once_keeps_nothing(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    same!(world.field("j1", FIELD).await?, None);
    Ok(())
}

/// The history of a job that finished in the end.
async fn a_success_keeps_the_failures_before(world: &World) -> Outcome {
    put(world, 1).await?;
    fails(world, "e").await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    same!(kept(world).await?.len(), 1);
    Ok(())
}

/// An ended job that runs again by hand.
async fn a_retry_by_hand_keeps_them(world: &World) -> Outcome {
    put(world, 0).await?;
    fails(world, "e").await?;
    world.broker.retry(&world.read("j1").await?).await?;
    same!(kept(world).await?.len(), 1);
    Ok(())
}

/// Line breaks, quotes and control characters are escaped; 500 bytes are kept.
async fn errors_are_cut_and_written_as_json(world: &World) -> Outcome {
    let error = format!("a\n\"\\\u{1}\u{7f}{}", "x".repeat(600));
    put(world, 0).await?;
    fails(world, &error).await?;
    same!(kept(world).await?[0].error, error[..500]);
    Ok(())
}

/// Numbers that are none are left out; lines of another form stay, and are not read.
async fn an_odd_record_keeps_what_can_be_read(world: &World) -> Outcome {
    put(world, 3).await?;
    let key = world.key("j1");
    for odd in ["x", "nan", "inf", "-1", "1e99"] {
        let claimed = world.take_one().await?;
        world
            .raw::<i64>(&["HSET", &key, "mw_started", odd, FIELD, "no JSON"])
            .await?;
        world.fail(&claimed, FailureKind::Script).await?;
        let all = kept(world).await?;
        same!((odd, all.len(), all[0].started_ms), (odd, 1, None));
        check!(
            world
                .field("j1", FIELD)
                .await?
                .unwrap_or_default()
                .starts_with("no JSON\n")
        );
        world.raw::<i64>(&["HSET", &key, "mw_attempt", "0"]).await?;
    }
    Ok(())
}

/// A field that another client wrote does not grow without end.
async fn a_large_field_of_others_is_cut(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let large = "x".repeat(100_000);
    world
        .raw::<i64>(&["HSET", &world.key("j1"), FIELD, &large])
        .await?;
    world.fail(&claimed, FailureKind::Script).await?;
    let field = world.field("j1", FIELD).await?.unwrap_or_default();
    check!(field.len() < 50_000);
    same!(kept(world).await?.len(), 1);
    Ok(())
}
