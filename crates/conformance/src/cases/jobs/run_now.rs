//! run_now: a job that waits for its due time, or for its retry, runs at once.

use std::time::Duration;

use meshwork_broker::RunNow;
use meshwork_model::job::When;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::dependencies::prerequisites::{after, run, waits};
use crate::cases::harness::options::{delayed, keyed, members, promote, put_keyed, set, taken};
use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_delayed_job_comes_to_its_queue,
    so_does_one_that_waits_for_its_next_run,
    one_that_waits_for_others_waits_for_no_time,
    what_waits_for_no_time_is_left_alone,
    its_key_may_have_to_wait_for_its_turn,
    one_that_is_due_is_not_put_off,
    a_record_without_its_queue_goes_where_its_route_says,
];

/// Calls the verb as the actor `somebody`.
async fn run_now(world: &World, id: &str) -> Got<RunNow> {
    let broker = world.broker.clone().acting_as("somebody");
    Ok(broker.run_now(&world.read(id).await?).await?)
}

/// The job goes to the end of its queue, once.
async fn a_delayed_job_comes_to_its_queue(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5_000)?]).await?;
    world.put(&["b"]).await?;
    world.pass(1_000);
    same!(run_now(world, "a").await?, RunNow::Queued);
    same!(world.waiting().await?, ["b", "a"]);
    same!(promote(world).await?, (0, None));
    let due = (START + 1_000).to_string();
    same!(world.field("a", "mw_run_at").await?, Some(due));
    same!(
        world.field("a", "updated_at").await?.as_deref(),
        Some("2023-11-14T22:13:21.123Z")
    );
    let logged = world.events().await?;
    let last = logged
        .last()
        .map(|event| event.each_ref().map(String::as_str));
    same!(last, Some(["a", "run_now", "somebody", ""]));
    same!(run_now(world, "a").await?, RunNow::Ready);
    same!(world.waiting().await?, ["b", "a"]);
    Ok(())
}

/// The job waits for its retry after a failure.
async fn so_does_one_that_waits_for_its_next_run(world: &World) -> Outcome {
    let mut job = world.job("a")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    let delay = Duration::from_secs(3600);
    world
        .broker
        .fail(&claimed, &failure, b"", b"", delay)
        .await?;
    check!(world.waiting().await?.is_empty());
    same!(run_now(world, "a").await?, RunNow::Queued);
    same!(promote(world).await?, (0, None));
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

/// It still waits for its prerequisites.
async fn one_that_waits_for_others_waits_for_no_time(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = after(world, "a", &["first"])?;
    job.when = Some(When::In(5_000));
    world.put_jobs(&[job]).await?;
    same!(run_now(world, "a").await?, RunNow::Waiting);
    same!(world.waiting().await?, ["first"]);
    check!(waits(world, "a").await?);
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["a"]);
    same!(promote(world).await?, (0, None));
    Ok(())
}

/// The answer has the reason.
async fn what_waits_for_no_time_is_left_alone(world: &World) -> Outcome {
    let ended = world.started("ended").await?;
    world.finish(&ended, "42").await?;
    world.started("runs").await?;
    world.put(&["ready", "gone"]).await?;
    let gone = world.read("gone").await?;
    world.broker.delete(&gone).await?;
    let before = world.all().await?;
    same!(run_now(world, "ended").await?, RunNow::Ended);
    same!(run_now(world, "runs").await?, RunNow::Running);
    same!(run_now(world, "ready").await?, RunNow::Ready);
    same!(world.broker.run_now(&gone).await?, RunNow::Missing);
    world.unchanged(&before).await?;
    // A key that an old client left under that name is no job.
    world.raw::<()>(&["LPUSH", &world.key("gone"), "x"]).await?;
    same!(world.broker.run_now(&gone).await?, RunNow::Missing);
    Ok(())
}

/// The same holds for each job that comes to a fair queue.
async fn its_key_may_have_to_wait_for_its_turn(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "k", &["a"]).await?;
    let mut jobs = keyed(world, "k", &["late"])?;
    jobs[0].when = Some(When::In(5_000));
    world.put_jobs(&jobs).await?;
    same!(run_now(world, "late").await?, RunNow::Queued);
    same!(world.waiting().await?, ["a"]);
    same!(members(world, "BACKLOG", Some("k")).await?, ["late"]);
    same!(taken(world, 1).await?, ["a"]);
    same!(taken(world, 1).await?, ["late"]);
    Ok(())
}

/// Its due time stays unchanged.
async fn one_that_is_due_is_not_put_off(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5_000)?]).await?;
    world.pass(9_000);
    same!(run_now(world, "a").await?, RunNow::Queued);
    let due = (START + 5_000).to_string();
    same!(world.field("a", "mw_run_at").await?, Some(due));
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

/// The record is that of a foreign client.
async fn a_record_without_its_queue_goes_where_its_route_says(world: &World) -> Outcome {
    let fields = [
        "HSET",
        &world.key("a"),
        "script_type",
        "osis",
        "status",
        "dispatched",
        "script",
        "1",
    ];
    world.raw::<()>(&fields).await?;
    let later = ["ZADD", &world.keys().delayed(), "1800000000000", "a"];
    world.raw::<()>(&later).await?;
    same!(run_now(world, "a").await?, RunNow::Queued);
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}
