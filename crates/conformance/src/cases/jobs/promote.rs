//! promote: a failed job returns to its queue after its pause.

use std::time::Duration;

use meshwork_broker::{Claimed, Failed, Promoted};
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::harness::world::START;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    waits_for_its_time,
    what_is_due_first_goes_first,
    takes_a_bounded_number,
    nothing_to_do_is_no_error,
    a_stopped_job_stays_stopped,
    a_deleted_job_stays_deleted,
    a_job_that_runs_already_is_left,
    a_job_that_has_ended_is_left,
    what_is_no_job_is_passed_over,
    a_queue_that_is_no_list_ends_it,
    a_repeated_call_changes_nothing,
    far_away_times_are_whole_numbers,
];

/// Fails a job, which then waits for this long.
pub(crate) async fn put_off(world: &World, id: &str, ms: u64) -> Result<Claimed, Failure> {
    let mut job = world.job(id)?;
    job.retries = 5;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    let delay = Duration::from_millis(ms);
    let said = world.broker.fail(&claimed, &failure, b"", b"", delay);
    same!(said.await?, Failed::Requeued);
    Ok(claimed)
}

async fn promote(world: &World) -> Result<(usize, Option<u64>), Failure> {
    let Promoted { due, next } = world.broker.promote().await?;
    Ok((due, next.map(|next| next.as_millis() as u64)))
}

/// The job returns at its time, exact to the millisecond, as the last one in its queue.
async fn waits_for_its_time(world: &World) -> Outcome {
    put_off(world, "j1", 5_000).await?;
    same!(world.status("j1").await?, "dispatched");
    same!(world.field("j1", "mw_token").await?, None);
    same!(world.lease("j1").await?, None);
    let due: u64 = world
        .raw(&["ZSCORE", &world.keys().delayed(), "j1"])
        .await?;
    same!(due, START + 5_000);
    world.put(&["j2"]).await?;
    same!(promote(world).await?, (0, Some(5_000)));
    world.pass(4_999);
    same!(promote(world).await?, (0, Some(1)));
    same!(world.waiting().await?, ["j2"]);
    world.pass(1);
    same!(promote(world).await?, (1, None));
    same!(world.waiting().await?, ["j2", "j1"]);
    same!(
        world
            .raw::<usize>(&["EXISTS", &world.keys().delayed()])
            .await?,
        0
    );
    Ok(())
}

/// The order of the failures does not matter.
async fn what_is_due_first_goes_first(world: &World) -> Outcome {
    for (id, ms) in [
        ("late", 3_000),
        ("soon", 1_000),
        ("next", 2_000),
        ("far", 90_000),
    ] {
        put_off(world, id, ms).await?;
    }
    world.pass(10_000);
    same!(promote(world).await?, (3, Some(80_000)));
    same!(world.waiting().await?, ["soon", "next", "late"]);
    Ok(())
}

/// A bound keeps calls from blocking the server. An overdue job is due in zero milliseconds.
async fn takes_a_bounded_number(world: &World) -> Outcome {
    let delayed = world.keys().delayed();
    let ghosts: Vec<_> = (0..1500).map(|n| format!("g{n}")).collect();
    let mut add = vec!["ZADD", &delayed];
    add.extend(ghosts.iter().flat_map(|ghost| ["1", ghost]));
    world.raw::<()>(&add).await?;
    same!(promote(world).await?, (1000, Some(0)));
    same!(promote(world).await?, (500, None));
    world.unchanged("").await
}

/// Nothing is written.
async fn nothing_to_do_is_no_error(world: &World) -> Outcome {
    same!(promote(world).await?, (0, None));
    world.unchanged("").await
}

/// The job is cancelled at once, like any waiting job.
async fn a_stopped_job_stays_stopped(world: &World) -> Outcome {
    put_off(world, "j1", 5_000).await?;
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "stopped", false).await?;
    same!(world.read("j1").await?.error.as_deref(), Some("stopped"));
    same!(promote(world).await?, (0, None));
    world.pass(5_000);
    promote(world).await?;
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// No key of it is left.
async fn a_deleted_job_stays_deleted(world: &World) -> Outcome {
    let claimed = put_off(world, "j1", 5_000).await?;
    world.broker.delete(&claimed.job).await?;
    same!(promote(world).await?, (0, None));
    check!(world.record("j1").await?.is_empty());
    Ok(())
}

/// Its id was pushed by hand.
async fn a_job_that_runs_already_is_left(world: &World) -> Outcome {
    put_off(world, "j1", 5_000).await?;
    world.push("j1").await?;
    let claimed = world.take_one().await?;
    let before = world.record("j1").await?;
    world.pass(5_000);
    same!(promote(world).await?, (1, None));
    same!(world.record("j1").await?, before);
    check!(world.waiting().await?.is_empty());
    world.finish(&claimed, "42").await?;
    Ok(())
}

/// Its id was pushed by hand, and the job has ended by now.
async fn a_job_that_has_ended_is_left(world: &World) -> Outcome {
    put_off(world, "j1", 5_000).await?;
    world.push("j1").await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    world.pass(5_000);
    same!(promote(world).await?, (1, None));
    same!(world.status("j1").await?, "finished");
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// A list with the name of a job, and a record without a queue, do not block others.
async fn what_is_no_job_is_passed_over(world: &World) -> Outcome {
    let delayed = world.keys().delayed();
    put_off(world, "j1", 3).await?;
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    let record = ["HSET", &world.key("lost"), "status", "dispatched"];
    world.raw::<()>(&record).await?;
    let add = ["ZADD", &delayed, "1", "list", "2", "lost"];
    world.raw::<()>(&add).await?;
    world.pass(3);
    // The record of the list may come back.
    same!(promote(world).await?, (3, Some(60_000)));
    same!(world.waiting().await?, ["j1"]);
    same!(world.status("lost").await?, "dispatched");
    Ok(())
}

/// The job is a dead letter, since it was not cancelled.
async fn a_queue_that_is_no_list_ends_it(world: &World) -> Outcome {
    put_off(world, "j1", 3).await?;
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    world.pass(3);
    promote(world).await?;
    same!(world.status("j1").await?, "error");
    same!(
        world.field("j1", "mw_dead").await?.as_deref(),
        Some("queue")
    );
    Ok(())
}

/// A call that is repeated after a broken connection pushes no job twice.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    put_off(world, "j1", 3).await?;
    world.pass(3);
    promote(world).await?;
    let before = world.all().await?;
    world.pass(1);
    same!(promote(world).await?, (0, None));
    world.unchanged(&before).await
}

/// The time has 15 digits, and each counts.
async fn far_away_times_are_whole_numbers(world: &World) -> Outcome {
    world.at(253_402_300_000_006);
    put_off(world, "j1", 3).await?;
    same!(promote(world).await?, (0, Some(3)));
    world.pass(3);
    same!(promote(world).await?, (1, None));
    Ok(())
}
