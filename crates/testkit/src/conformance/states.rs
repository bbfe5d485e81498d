//! Every status met with every event, on the real scripts, against the one table of changes.

use meshwork_broker::Claimed;
use meshwork_model::outcome::FailureKind;
use meshwork_model::state::{Event, Status};

use super::world::LEASE_MS;
use super::{Failure, Outcome, World, cases, check, same};

cases![the_scripts_keep_to_the_table];

/// Brings a new job into `status`, with the claim that brought it there, or the last one before.
async fn job_in(world: &World, id: &str, status: Status, retries: u32) -> Result<Claimed, Failure> {
    let mut job = world.job(id)?;
    job.retries = retries;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    match status {
        Status::Dispatched => drop(world.broker.release(&claimed).await?),
        Status::Started => {}
        Status::Finished => drop(world.finish(&claimed, "42").await?),
        Status::Error => drop(world.fail(&claimed, FailureKind::Permanent).await?),
    }
    let is = world.status(id).await?;
    if is != status.as_str() {
        return Err(Failure::new(format!("{id} is {is}, not {status}")));
    }
    Ok(claimed)
}

/// Makes the event happen, as far as the scripts let it.
async fn happens(world: &World, claimed: &Claimed, event: Event) -> Outcome {
    let id = claimed.job.id.as_str();
    match event {
        Event::Claim => {
            // The id is in the queue whatever the job's status is.
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
                .cancel(&world.read(id).await?, "stopped")
                .await?,
        ),
        Event::Retry => drop(world.broker.retry(&world.read(id).await?).await?),
    }
    Ok(())
}

/// A change that the table has happens; one that it has not changes nothing at all.
async fn the_scripts_keep_to_the_table(world: &World) -> Outcome {
    for status in Status::ALL {
        for event in Event::ALL {
            let id = format!("{status}-{event:?}");
            let claimed = job_in(world, &id, status, 5).await?;
            let before = world.all().await?;
            world.pass(1);
            happens(world, &claimed, event).await?;
            match status.next(event) {
                Ok(next) => same!(
                    (id.as_str(), world.status(&id).await?.as_str()),
                    (id.as_str(), next.as_str())
                ),
                Err(_) => world.unchanged(&before).await.map_err(|failure| {
                    Failure::new(format!("{status} met with {event:?}: {failure}"))
                })?,
            }
            // The next one finds nothing of this one.
            world.raw::<()>(&["FLUSHDB"]).await?;
            world.pass(LEASE_MS);
        }
    }
    check!(Status::ALL.len() * Event::ALL.len() == 32);
    Ok(())
}
