//! Jobs for one worker that others may run if it is absent: their queues, and the checks of these jobs while they are
//! in that worker's queue.

use std::time::Duration;

use meshwork_broker::{Cancelled, Claimed};
use meshwork_model::job::NewJob;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};
use meshwork_model::route::Fallback;

use super::world::{START, WORKER};
use super::{Failure, Outcome, World, cases, check, same};

cases![
    goes_to_the_others_if_the_worker_is_away,
    what_took_its_fallback_is_found_there,
    goes_to_the_worker_if_it_is_there,
    waits_for_the_worker_without_a_fallback,
    nobody_looks_after_it_while_it_runs,
    every_way_back_is_looked_after,
    a_job_that_waited_for_others_is_looked_after,
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
    world.raw(&["SET", &presence(world)?, "{}"]).await
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
                at += super::world::LEASE_MS;
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
    super::waits::run(world, "first", true).await?;
    same!(world.list(&queue(world)).await?, ["a"]);
    same!(watched(world, "a").await?, Some(START + 5_100));
    check!(world.field("a", "mw_fallback").await?.is_some());
    Ok(())
}
