//! Events: the change of a job, the actor, and a note; for the audit of all executions.

use std::time::Duration;

use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::dependencies::prerequisites::put_after;
use crate::cases::harness::world::WORKER;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_life_told_from_beginning_to_end,
    each_end_is_told,
    who_asked_is_told,
    what_changes_nothing_is_not_told,
    a_long_note_is_cut,
];

/// Returns `what by note` of the events of one job.
pub(crate) async fn events_of(world: &World, id: &str) -> Result<Vec<String>, Failure> {
    let events = world.events().await?.into_iter();
    let of = events.filter(|[job, ..]| job == id);
    Ok(of
        .map(|[_, what, by, note]| format!("{what} {by} {note}"))
        .collect())
}

/// The events are in order.
async fn a_life_told_from_beginning_to_end(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = crate::cases::dependencies::prerequisites::after(world, "j1", &["first"])?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    crate::cases::dependencies::prerequisites::run(world, "first", true).await?;
    let claimed = world.take_one().await?;
    world.broker.release(&claimed).await?;
    world.take_one().await?;
    world.lose_all().await?;
    let claimed = world.take_one().await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    let delay = Duration::from_millis(5);
    world
        .broker
        .fail(&claimed, &failure, b"", b"", delay)
        .await?;
    world.pass(5);
    world.broker.promote().await?;
    let claimed = world.take_one().await?;
    world.broker.cancel(&claimed.job, "why", false).await?;
    world.finish(&claimed, "42").await?;
    world.broker.retry(&world.read("j1").await?).await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "43").await?;
    world.broker.delete(&claimed.job).await?;
    let life = [
        "enqueue  osis",
        "ready first ",
        "claim w1-a ",
        "release w1-a ",
        "claim w1-a ",
        "lost w1-a ",
        "claim w1-a ",
        "retry w1-a boom",
        "claim w1-a ",
        "stop  why",
        "finished w1-a ",
        "requeue  ",
        "claim w1-a ",
        "finished w1-a ",
        "delete  ",
    ];
    same!(events_of(world, "j1").await?, life);
    Ok(())
}

/// The event has the kind of the end.
async fn each_end_is_told(world: &World) -> Outcome {
    let end = async |id: &str| events_of(world, id).await.map(|mut events| events.pop());
    let is = |text: &str| Some(text.to_owned());
    let claimed = world.started("a").await?;
    world.fail(&claimed, FailureKind::Timeout).await?;
    same!(end("a").await?, is("error w1-a timeout"));
    let claimed = world.started("b").await?;
    world.fail(&claimed, FailureKind::Stopped).await?;
    same!(end("b").await?, is("error w1-a "));
    world.put(&["c"]).await?;
    for _ in 0..MAX_LOST {
        world.take_one().await?;
        world.lose_all().await?;
    }
    same!(end("c").await?, is("error  poison"));
    put_after(world, "d", &["a"]).await?;
    same!(end("d").await?, is("error  "));
    let claimed = world.started("e").await?;
    world.broker.cancel(&claimed.job, "why", false).await?;
    world.broker.release(&claimed).await?;
    same!(end("e").await?, is("error w1-a "));
    Ok(())
}

/// The event has the name of the actor, if the client has one.
async fn who_asked_is_told(world: &World) -> Outcome {
    let alice = world.broker.clone().acting_as("alice");
    alice.enqueue(&[world.job("j1")?]).await?;
    let job = world.read("j1").await?;
    alice.cancel(&job, "why", false).await?;
    alice.retry(&world.read("j1").await?).await?;
    alice.delete(&job).await?;
    let requests = [
        "enqueue alice osis",
        "error alice ",
        "requeue alice ",
        "delete alice ",
    ];
    same!(events_of(world, "j1").await?, requests);
    let mut second = world.job("j2")?;
    second.key = Some("k".to_owned());
    alice.enqueue(&[second]).await?;
    same!(events_of(world, "j2").await?, ["enqueue alice osis"]);
    Ok(())
}

/// Calls that are repeated, late or refused add no event.
async fn what_changes_nothing_is_not_told(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    let before = world.events().await?;
    world.broker.enqueue(&[world.job("j1")?]).await?;
    world.push("j1").await?;
    world.take(5).await?;
    world.finish(&claimed, "42").await?;
    world.fail(&claimed, FailureKind::Script).await?;
    world.broker.release(&claimed).await?;
    world.broker.cancel(&claimed.job, "why", true).await?;
    world.renew(WORKER, std::slice::from_ref(&claimed)).await?;
    world.lose_all().await?;
    world.broker.resolve_dependents().await?;
    world.broker.promote().await?;
    same!(world.events().await?, before);
    Ok(())
}

/// Long notes would fill the memory; the record has the whole text.
async fn a_long_note_is_cut(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let long = "x".repeat(5_000);
    let failure = Wrong::new(FailureKind::Script, long.clone());
    let said = world
        .broker
        .fail(&claimed, &failure, b"", b"", Duration::ZERO);
    said.await?;
    let event = events_of(world, "j1").await?.pop().unwrap_or_default();
    same!(event, format!("retry w1-a {}", &long[..200]));
    check!(world.field("j1", "error").await? == Some(long));
    Ok(())
}
