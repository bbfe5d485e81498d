//! Every status with every event, on the real scripts, compared to the table of changes.

use std::sync::Arc;

use meshwork_broker::Claimed;
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Route;
use meshwork_model::state::{Event, Status};

use crate::cases::harness::world::LEASE_MS;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![the_scripts_keep_to_the_table];

/// The prerequisite of the other jobs, in fact or possibly.
const FIRST: &str = "first";

/// Brings a new job into `status`. Returns the claim that led there, or the last one before.
async fn job_in(world: &World, id: &str, status: Status, retries: u32) -> Result<Claimed, Failure> {
    let mut first = world.job(FIRST)?;
    first.route = Route::to("sal".parse()?);
    world.put_jobs(&[first]).await?;
    let mut job = world.job(id)?;
    job.retries = retries;
    job.depends_on = vec![FIRST.parse()?];
    world.put_jobs(&[job]).await?;
    if status == Status::WaitingForPrerequisites {
        let nobodys = world.read(id).await?;
        same!(nobodys.status(), Some(status));
        return Ok(Claimed {
            job: Arc::new(nobodys),
            queue: world.queue(),
            token: "t0".to_owned(),
        });
    }
    first_ends(world, true).await?;
    let claimed = world.take_one().await?;
    match status {
        Status::Dispatched => drop(world.broker.release(&claimed).await?),
        Status::Started | Status::WaitingForPrerequisites => {}
        Status::Finished => drop(world.finish(&claimed, "42").await?),
        Status::Error => drop(world.fail(&claimed, FailureKind::Permanent).await?),
    }
    same!(world.read(id).await?.status(), Some(status));
    Ok(claimed)
}

async fn first_ends(world: &World, well: bool) -> Outcome {
    let sal = [world.queue_of("sal")];
    let mut first = world.claim("w2-b", &sal, 1).await?.jobs;
    let first = first
        .pop()
        .ok_or_else(|| Failure::new("the first job is not there"))?;
    if well {
        world.finish(&first, "").await?;
    } else {
        world.fail(&first, FailureKind::Permanent).await?;
    }
    Ok(())
}

/// Ends the first job. A job that does not wait for it is notified all the same.
async fn told_of_first(world: &World, id: &str, well: bool) -> Outcome {
    if world.read(id).await?.waiting > 0 {
        return first_ends(world, well).await;
    }
    let status = if well { "finished" } else { "error" };
    let was = world.status(FIRST).await?;
    world
        .raw::<()>(&["HSET", &world.key(FIRST), "status", status])
        .await?;
    let next = format!("{}{FIRST}", world.named("DEPENDENTS")?);
    world.raw::<()>(&["RPUSH", &next, id]).await?;
    world
        .raw::<()>(&["RPUSH", &world.named("UNRESOLVED")?, FIRST])
        .await?;
    check!(!world.broker.resolve_dependents().await?);
    world
        .raw(&["HSET", &world.key(FIRST), "status", &was])
        .await
}

/// Causes the event, as far as the scripts allow it.
async fn happens(world: &World, claimed: &Claimed, event: Event) -> Outcome {
    let id = claimed.job.id.as_str();
    match event {
        Event::Claim => {
            // The id is in the queue, whatever the job's status is.
            world.raw::<()>(&["LREM", &world.queue(), "0", id]).await?;
            world.push(id).await?;
            world.take(5).await?;
        }
        Event::Finish => drop(world.finish(claimed, "43").await?),
        Event::Fail => drop(world.fail(claimed, FailureKind::Permanent).await?),
        Event::Requeue => drop(world.fail(claimed, FailureKind::Script).await?),
        Event::Release => drop(world.broker.release(claimed).await?),
        Event::Reclaim => drop(world.lose_all().await?),
        Event::Cancel => drop(
            world
                .broker
                .cancel(&world.read(id).await?, "stopped", true)
                .await?,
        ),
        Event::Retry => drop(world.broker.retry(&world.read(id).await?).await?),
        Event::Ready => told_of_first(world, id, true).await?,
        Event::Fault => told_of_first(world, id, false).await?,
    }
    Ok(())
}

/// A change in the table happens; any other event changes nothing.
async fn the_scripts_keep_to_the_table(world: &World) -> Outcome {
    for status in Status::ALL {
        for event in Event::ALL {
            let id = format!("{status}-{event:?}");
            let claimed = job_in(world, &id, status, 5).await?;
            let before = world.all().await?;
            world.pass(1);
            happens(world, &claimed, event).await?;
            match status.next(event) {
                Ok(next) => same!((&id, world.read(&id).await?.status()), (&id, Some(next))),
                Err(_) => world.unchanged(&before).await.map_err(|failure| {
                    Failure::new(format!("{status} met with {event:?}: {failure}"))
                })?,
            }
            // The next case finds no state of this one.
            world.raw::<()>(&["FLUSHDB"]).await?;
            world.pass(LEASE_MS);
        }
    }
    check!(Status::ALL.len() * Event::ALL.len() == 50);
    Ok(())
}
