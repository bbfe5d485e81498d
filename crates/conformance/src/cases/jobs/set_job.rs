//! set_job: a job that waits gets another priority, due time or timeout.

use std::time::Duration;

use meshwork_broker::{JobChange, SetJob};
use meshwork_model::job::When;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};
use meshwork_model::route::Priority;

use crate::cases::dependencies::prerequisites::{after, run, waits};
use crate::cases::harness::legacy_worker::fill;
use crate::cases::harness::options::{delayed, keyed, members, promote, put_keyed, set, taken};
use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_new_priority_is_another_list,
    a_delay_counts_from_now,
    no_delay_is_at_once,
    the_first_due_job_sends_a_wakeup,
    a_retry_keeps_its_time_at_a_new_priority,
    one_that_waits_for_others_has_the_values_later,
    a_timeout_alone_moves_nothing,
    its_start_timeout_moves_with_its_time,
    what_does_not_wait_is_left_alone,
    an_id_in_a_long_queue_is_not_searched,
    a_backlog_is_left_for_another_queue,
    the_next_of_its_key_takes_its_turn,
    a_record_of_others_goes_where_its_route_says,
];

pub(crate) const HIGH: JobChange = JobChange {
    priority: Some(Priority::High),
    delay: None,
    timeout: None,
};

pub(crate) const fn in_ms(ms: u64) -> JobChange {
    JobChange {
        priority: None,
        delay: Some(Duration::from_millis(ms)),
        timeout: None,
    }
}

/// Calls the verb as the actor `somebody`.
pub(crate) async fn change(world: &World, id: &str, change: JobChange) -> Got<SetJob> {
    let broker = world.broker.clone().acting_as("somebody");
    Ok(broker.set_job(&world.read(id).await?, &change).await?)
}

/// Returns the ids in the list of high priority.
pub(crate) async fn high(world: &World) -> Got<Vec<String>> {
    world.list(&format!("{}:prio:0", world.queue())).await
}

/// The job is at the end of that list, and of its first one when it comes back.
async fn a_new_priority_is_another_list(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    world.pass(1_000);
    same!(change(world, "a", HIGH).await?, SetJob::Set);
    same!(world.waiting().await?, ["b"]);
    same!(high(world).await?, ["a"]);
    same!(world.read("a").await?.priority.as_deref(), Some("high"));
    same!(
        world.field("a", "updated_at").await?.as_deref(),
        Some("2023-11-14T22:13:21.123Z")
    );
    let logged = world.events().await?;
    let last = logged
        .last()
        .map(|event| event.each_ref().map(String::as_str));
    same!(last, Some(["a", "set", "somebody", ""]));
    let normal = JobChange {
        priority: Some(Priority::Normal),
        ..HIGH
    };
    same!(change(world, "a", normal).await?, SetJob::Set);
    same!(high(world).await?, [""; 0]);
    same!(taken(world, 2).await?, ["b", "a"]);
    Ok(())
}

/// A later call counts anew.
async fn a_delay_counts_from_now(world: &World) -> Outcome {
    world.put(&["a"]).await?;
    world.pass(1_000);
    same!(change(world, "a", in_ms(5_000)).await?, SetJob::Set);
    same!(world.waiting().await?, [""; 0]);
    let due = (START + 6_000).to_string();
    same!(world.field("a", "mw_run_at").await?, Some(due));
    same!(promote(world).await?, (0, Some(5_000)));
    world.pass(2_000);
    same!(change(world, "a", in_ms(5_000)).await?, SetJob::Set);
    same!(promote(world).await?, (0, Some(5_000)));
    world.pass(5_000);
    same!(promote(world).await?, (1, None));
    same!(taken(world, 2).await?, ["a"]);
    Ok(())
}

/// A delayed job comes to its queue, once.
async fn no_delay_is_at_once(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5_000)?]).await?;
    same!(change(world, "a", in_ms(0)).await?, SetJob::Set);
    same!(promote(world).await?, (0, None));
    same!(world.waiting().await?, ["a"]);
    Ok(())
}

/// Only the earliest due time sends one.
async fn the_first_due_job_sends_a_wakeup(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    let due = world.named("DUE")?;
    same!(change(world, "a", in_ms(5_000)).await?, SetJob::Set);
    same!(world.list(&due).await?, ["1"]);
    world.raw::<()>(&["DEL", &due]).await?;
    same!(change(world, "b", in_ms(9_000)).await?, SetJob::Set);
    same!(world.list(&due).await?, [""; 0]);
    Ok(())
}

/// It comes to the list of the new priority then.
async fn a_retry_keeps_its_time_at_a_new_priority(world: &World) -> Outcome {
    let mut job = world.job("a")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    let delay = Duration::from_secs(60);
    world
        .broker
        .fail(&claimed, &failure, b"", b"", delay)
        .await?;
    same!(change(world, "a", HIGH).await?, SetJob::Set);
    same!(promote(world).await?, (0, Some(60_000)));
    world.pass(60_000);
    same!(promote(world).await?, (1, None));
    same!(high(world).await?, ["a"]);
    Ok(())
}

/// The prerequisite brings it to the list of its priority, or to its time.
async fn one_that_waits_for_others_has_the_values_later(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let jobs = ["a", "b"].map(|id| after(world, id, &["first"]));
    let jobs: Got<Vec<_>> = jobs.into_iter().collect();
    world.put_jobs(&jobs?).await?;
    same!(change(world, "a", HIGH).await?, SetJob::Set);
    same!(change(world, "b", in_ms(5_000)).await?, SetJob::Set);
    check!(waits(world, "a").await? && waits(world, "b").await?);
    same!(world.waiting().await?, ["first"]);
    same!(promote(world).await?, (0, None));
    run(world, "first", true).await?;
    same!(high(world).await?, ["a"]);
    same!(promote(world).await?, (0, Some(5_000)));
    Ok(())
}

/// The order of the queue stays.
async fn a_timeout_alone_moves_nothing(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    let minute = JobChange {
        timeout: Some(Duration::from_secs(60)),
        ..JobChange::default()
    };
    same!(change(world, "a", minute).await?, SetJob::Set);
    same!(world.read("a").await?.timeout, 60);
    same!(world.waiting().await?, ["a", "b"]);
    Ok(())
}

/// It counts from the new due time.
async fn its_start_timeout_moves_with_its_time(world: &World) -> Outcome {
    let mut job = world.job("a")?;
    job.start_timeout_ms = Some(2_000);
    world.put_jobs(&[job]).await?;
    same!(change(world, "a", in_ms(5_000)).await?, SetJob::Set);
    same!(world.read("a").await?.start_by_ms, Some(START + 7_000));
    let starts = world.named("STARTS")?;
    let by: u64 = world.raw(&["ZSCORE", &starts, "a"]).await?;
    same!(by, START + 7_000);
    Ok(())
}

/// The answer has the reason.
async fn what_does_not_wait_is_left_alone(world: &World) -> Outcome {
    let ended = world.started("ended").await?;
    world.finish(&ended, "42").await?;
    world.started("runs").await?;
    world.put(&["gone", "fetched"]).await?;
    let gone = world.read("gone").await?;
    world.broker.delete(&gone).await?;
    world
        .raw::<()>(&["LREM", &world.queue(), "0", "fetched"])
        .await?;
    let before = world.all().await?;
    same!(change(world, "ended", HIGH).await?, SetJob::Ended);
    same!(change(world, "runs", HIGH).await?, SetJob::Running);
    same!(change(world, "fetched", HIGH).await?, SetJob::Taken);
    same!(world.broker.set_job(&gone, &HIGH).await?, SetJob::Missing);
    world.unchanged(&before).await?;
    // A key that an old client left under that name is no job.
    world.raw::<()>(&["LPUSH", &world.key("gone"), "x"]).await?;
    same!(world.broker.set_job(&gone, &HIGH).await?, SetJob::Missing);
    Ok(())
}

/// A search would stop the server.
async fn an_id_in_a_long_queue_is_not_searched(world: &World) -> Outcome {
    world.put(&["a"]).await?;
    fill(world, &world.queue(), 0..10_000).await?;
    same!(change(world, "a", HIGH).await?, SetJob::Long);
    let minute = JobChange {
        timeout: Some(Duration::from_secs(60)),
        ..JobChange::default()
    };
    same!(change(world, "a", minute).await?, SetJob::Set);
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

/// A job that waits for a slot of its key has no place in the queue.
async fn a_backlog_is_left_for_another_queue(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "k", &["a", "late"]).await?;
    same!(members(world, "BACKLOG", Some("k")).await?, ["late"]);
    same!(change(world, "late", HIGH).await?, SetJob::Set);
    same!(members(world, "BACKLOG", Some("k")).await?, [""; 0]);
    same!(high(world).await?, ["late"]);
    same!(world.waiting().await?, ["a"]);
    Ok(())
}

/// The job that leaves the queue frees its turn.
async fn the_next_of_its_key_takes_its_turn(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "k", &["a", "next"]).await?;
    let mut later = keyed(world, "k", &["later"])?;
    later[0].when = Some(When::In(5_000));
    world.put_jobs(&later).await?;
    same!(change(world, "a", in_ms(5_000)).await?, SetJob::Set);
    same!(world.waiting().await?, ["next"]);
    // It waits for a turn behind the others.
    same!(change(world, "later", in_ms(0)).await?, SetJob::Set);
    same!(members(world, "BACKLOG", Some("k")).await?, ["later"]);
    Ok(())
}

/// The record names no queue.
async fn a_record_of_others_goes_where_its_route_says(world: &World) -> Outcome {
    world.put_foreign("a", &[("script_type", "osis")]).await?;
    same!(change(world, "a", HIGH).await?, SetJob::Set);
    same!(high(world).await?, ["a"]);
    world.put_foreign("b", &[("script_type", "osis")]).await?;
    same!(change(world, "b", in_ms(5_000)).await?, SetJob::Set);
    world.pass(5_000);
    same!(promote(world).await?, (1, None));
    same!(world.waiting().await?, ["b"]);
    Ok(())
}
