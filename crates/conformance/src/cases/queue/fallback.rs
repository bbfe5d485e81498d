//! Jobs for one worker that others may run if it is absent: their queues, and the checks of these jobs while they are
//! in that worker's queue.

use std::time::Duration;

use meshwork_broker::{Cancelled, Claimed};
use meshwork_model::job::NewJob;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};
use meshwork_model::route::Fallback;

use crate::cases::harness::world::{START, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    goes_to_the_others_if_the_worker_is_away,
    what_took_its_fallback_is_found_there,
    goes_to_the_worker_if_it_is_there,
    waits_for_the_worker_without_a_fallback,
    nobody_looks_after_it_while_it_runs,
    every_way_back_is_looked_after,
    a_job_that_waited_for_others_is_looked_after,
    goes_to_the_others_if_the_worker_is_full,
    stays_while_the_worker_has_a_free_slot,
    leaves_a_worker_that_became_full,
];

/// Returns a job for instance `7` of the group `io`.
fn bound(world: &World, id: &str, fallback: Option<Fallback>) -> Result<NewJob, Failure> {
    let mut job = world.job(id)?;
    job.route.group = Some("io".parse()?);
    job.route.instance = Some("7".parse()?);
    job.fallback = fallback;
    job.retries = 5;
    Ok(job)
}

fn presence(world: &World) -> Result<String, Failure> {
    let keys = world.keys();
    Ok(keys.presence_key(&"osis".parse()?, &"io".parse()?, &"7".parse()?))
}

async fn arrive(world: &World) -> Outcome {
    register(world, "{}").await
}

/// Writes the registration of the worker.
async fn register(world: &World, value: &str) -> Outcome {
    world.raw(&["SET", &presence(world)?, value]).await
}

fn queue(world: &World) -> String {
    world.queue_of("osis:group:io:inst:7")
}

async fn watched(world: &World, id: &str) -> Result<Option<u64>, Failure> {
    world.raw(&["ZSCORE", &world.keys().watch(), id]).await
}

/// The job goes to the queue of the group or of the type, and is a job like any other there.
async fn goes_to_the_others_if_the_worker_is_away(world: &World) -> Outcome {
    for (id, fallback, queue) in [
        ("a", Fallback::Group, world.queue_of("osis:group:io")),
        ("b", Fallback::Type, world.queue()),
    ] {
        world.put_jobs(&[bound(world, id, Some(fallback))?]).await?;
        same!(world.list(&queue).await?, [id]);
        same!(world.field(id, "mw_fallback").await?, None);
        same!(watched(world, id).await?, None);
    }
    same!(world.list(&queue(world)).await?.len(), 0);
    Ok(())
}

/// Cancel and retry find the job there.
async fn what_took_its_fallback_is_found_there(world: &World) -> Outcome {
    for fallback in [Fallback::Group, Fallback::Type] {
        let id = if fallback == Fallback::Group {
            "a"
        } else {
            "b"
        };
        let others = match fallback {
            Fallback::Group => world.queue_of("osis:group:io"),
            Fallback::Type => world.queue(),
        };
        world.put_jobs(&[bound(world, id, Some(fallback))?]).await?;
        let job = world.read(id).await?;
        let outcome = world.broker.cancel(&job, "stopped", false).await?;
        same!(outcome, Cancelled::Cancelled);
        same!(world.list(&others).await?.len(), 0);
        world.broker.retry(&world.read(id).await?).await?;
        same!(world.list(&others).await?, [id]);
        same!(world.list(&queue(world)).await?.len(), 0);
    }
    Ok(())
}

/// The job has a note of the alternative queue.
async fn goes_to_the_worker_if_it_is_there(world: &World) -> Outcome {
    arrive(world).await?;
    world
        .put_jobs(&[bound(world, "a", Some(Fallback::Type))?])
        .await?;
    same!(world.list(&queue(world)).await?, ["a"]);
    let note = format!("{} {}", presence(world)?, world.queue());
    same!(world.field("a", "mw_fallback").await?, Some(note));
    same!(world.field("a", "mw_queue").await?, Some(queue(world)));
    same!(watched(world, "a").await?, Some(START + 5_000));
    Ok(())
}

/// The wait has no limit.
async fn waits_for_the_worker_without_a_fallback(world: &World) -> Outcome {
    for id in ["a", "b"] {
        world.put_jobs(&[bound(world, id, None)?]).await?;
        same!(watched(world, id).await?, None);
        arrive(world).await?;
    }
    same!(world.list(&queue(world)).await?, ["a", "b"]);
    Ok(())
}

async fn claimed(world: &World) -> Result<Claimed, Failure> {
    let mut taken = world.claim(WORKER, &[queue(world)], 1).await?.jobs;
    taken
        .pop()
        .ok_or_else(|| Failure::new("nothing was claimed"))
}

/// A running job has a lease instead.
async fn nobody_looks_after_it_while_it_runs(world: &World) -> Outcome {
    arrive(world).await?;
    world
        .put_jobs(&[bound(world, "a", Some(Fallback::Type))?])
        .await?;
    claimed(world).await?;
    same!(watched(world, "a").await?, None);
    Ok(())
}

/// The job is released, lost, failed, snoozed, or retried by hand: the worker may be absent by then.
async fn every_way_back_is_looked_after(world: &World) -> Outcome {
    arrive(world).await?;
    world
        .put_jobs(&[bound(world, "a", Some(Fallback::Type))?])
        .await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    for way in ["release", "lose", "fail", "put off", "retry"] {
        world.at(START);
        let job = claimed(world).await?;
        let mut at = START;
        match way {
            "release" => drop(world.broker.release(&job).await?),
            "lose" => {
                world.lose_all().await?;
                at += crate::cases::harness::world::LEASE_MS;
            }
            "fail" | "put off" => {
                let delay = Duration::from_millis(if way == "fail" { 0 } else { 9 });
                world.broker.fail(&job, &failure, b"", b"", delay).await?;
                if way == "put off" {
                    same!(watched(world, "a").await?, None);
                    world.pass(9);
                    world.broker.promote().await?;
                    at += 9;
                }
            }
            _ => {
                world.finish(&job, "42").await?;
                world.broker.retry(&world.read("a").await?).await?;
            }
        }
        same!(world.list(&queue(world)).await?, ["a"]);
        same!((way, watched(world, "a").await?), (way, Some(at + 5_000)));
    }
    Ok(())
}

/// Its worker may have stopped while the job waited.
async fn a_job_that_waited_for_others_is_looked_after(world: &World) -> Outcome {
    arrive(world).await?;
    world.put(&["first"]).await?;
    let mut job = bound(world, "a", Some(Fallback::Type))?;
    job.depends_on = vec!["first".parse()?];
    world.put_jobs(&[job]).await?;
    world.pass(100);
    crate::cases::dependencies::prerequisites::run(world, "first", true).await?;
    same!(world.list(&queue(world)).await?, ["a"]);
    same!(watched(world, "a").await?, Some(START + 5_100));
    check!(world.field("a", "mw_fallback").await?.is_some());
    Ok(())
}

/// Registrations of a worker without a free slot, and of one that claims no more jobs.
const FULL: [&str; 5] = [
    r#"{"in_flight":2,"slots":2,"quiet":false}"#,
    r#"{"in_flight":11,"slots":10}"#,
    r#"{ "slots" : 1 , "in_flight" : 1 }"#,
    r#"{"in_flight":0,"slots":2,"quiet":true}"#,
    r#"{"quiet": true}"#,
];
/// Registrations of a worker that may have a free slot. Foreign workers write no numbers of slots.
const FREE: [&str; 7] = [
    r#"{"in_flight":1,"slots":2,"quiet":false}"#,
    r#"{"in_flight":9,"slots":10}"#,
    r#"{"in_flight":3}"#,
    r#"{"slots":3}"#,
    r#"{"in_flight":0,"slots":0}"#,
    r#"{"hostname":"\"in_flight\":9,\"slots\":1"}"#,
    "x",
];

/// Nothing is noted, as for an absent worker.
async fn goes_to_the_others_if_the_worker_is_full(world: &World) -> Outcome {
    for (n, full) in FULL.iter().enumerate() {
        register(world, full).await?;
        let id = format!("j{n}");
        let job = bound(world, &id, Some(Fallback::Group))?;
        world.put_jobs(&[job]).await?;
        same!((full, world.field(&id, "mw_fallback").await?), (full, None));
        same!(watched(world, &id).await?, None);
    }
    let others = world.list(&world.queue_of("osis:group:io")).await?;
    same!(others.len(), FULL.len());
    // Without a fallback it waits.
    world.put_jobs(&[bound(world, "k", None)?]).await?;
    same!(world.list(&queue(world)).await?, ["k"]);
    Ok(())
}

/// A registration of another kind says nothing about slots.
async fn stays_while_the_worker_has_a_free_slot(world: &World) -> Outcome {
    let mut ids = Vec::new();
    for (n, free) in FREE.iter().enumerate() {
        register(world, free).await?;
        ids.push(format!("j{n}"));
        let job = bound(world, &ids[n], Some(Fallback::Group))?;
        world.put_jobs(&[job]).await?;
        same!(
            (free, world.list(&queue(world)).await?),
            (free, ids.clone())
        );
    }
    let key = presence(world)?;
    world.raw::<()>(&["DEL", &key]).await?;
    world.raw::<()>(&["HSET", &key, "slots", "1"]).await?;
    world
        .put_jobs(&[bound(world, "odd", Some(Fallback::Group))?])
        .await?;
    ids.push("odd".to_owned());
    same!(world.list(&queue(world)).await?, ids);
    // The checks find a worker that is there.
    for _ in 0..3 {
        world.pass(5_000);
        same!(world.broker.check_orphans().await?.pushed.len(), 0);
    }
    same!(world.list(&queue(world)).await?, ids);
    Ok(())
}

/// The next check moves the job, once.
async fn leaves_a_worker_that_became_full(world: &World) -> Outcome {
    let others = world.queue_of("osis:group:io");
    register(world, FREE[0]).await?;
    world
        .put_jobs(&[bound(world, "a", Some(Fallback::Group))?])
        .await?;
    world.pass(5_000);
    same!(world.broker.check_orphans().await?.pushed.len(), 0);
    register(world, FULL[0]).await?;
    world.pass(5_000);
    same!(world.broker.check_orphans().await?.pushed, ["a"]);
    same!(world.list(&queue(world)).await?.len(), 0);
    same!(world.list(&others).await?, ["a"]);
    same!(world.field("a", "mw_fallback").await?, None);
    register(world, FREE[0]).await?;
    world.pass(5_000);
    same!(world.broker.check_orphans().await?.pushed.len(), 0);
    same!(world.list(&others).await?, ["a"]);
    Ok(())
}
