//! tick, while the job of the last slot has not ended: the next one is skipped, runs beside it, or replaces it.

use meshwork_broker::Completed;
use meshwork_model::outcome::FailureKind;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::policy::Overlap;

use crate::cases::schedules::fire_schedules::{FIRST, SECOND, after_one, tick};
use crate::cases::schedules::put_schedule::{SLOT, every, put, read};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_slot_is_skipped_while_the_last_job_goes_on,
    a_job_that_waits_is_replaced,
    a_job_that_runs_is_replaced_when_it_has_ended,
    a_job_that_waits_for_a_replaced_one_is_replaced,
    a_job_that_is_to_stop_is_not_told_again,
    jobs_may_overlap,
];

/// The last job waits, runs, or waits for its retry.
async fn a_slot_is_skipped_while_the_last_job_goes_on(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    let mut job = world.job("any")?;
    job.retries = 1;
    schedule = Schedule::new(schedule.name.clone(), schedule.timing.clone(), job);
    put(world, &schedule).await?;
    world.at(SLOT);
    same!(tick(world).await?, (1, 1, 0));
    world.pass(10_000);
    same!(tick(world).await?, (1, 0, 1));
    let claimed = world.take_one().await?;
    world.pass(10_000);
    same!(tick(world).await?, (1, 0, 1));
    world.fail(&claimed, FailureKind::Script).await?;
    world.pass(10_000);
    same!(tick(world).await?, (1, 0, 1));
    same!(world.waiting().await?, [FIRST]);
    let skipped = world.events().await?;
    let skipped = skipped.iter().filter(|[_, what, ..]| what == "skip");
    same!(skipped.clone().count(), 3);
    check!(
        skipped
            .clone()
            .any(|[id, _, _, note]| id == SECOND && note.starts_with(FIRST))
    );
    same!(
        world.finish(&world.take_one().await?, "").await?,
        Completed::Finished
    );
    world.pass(10_000);
    same!(tick(world).await?, (1, 1, 0));
    let there = read(world).await?;
    same!((there.runs, there.skipped), (2, 3));
    Ok(())
}

/// The replaced job ends at once.
async fn a_job_that_waits_is_replaced(world: &World) -> Outcome {
    after_one(world, Overlap::Replace).await?;
    world.pass(10_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.waiting().await?, [SECOND]);
    let first = world.read(FIRST).await?;
    same!(first.error, Some(format!("replaced by {SECOND}")));
    same!(world.status(SECOND).await?, "dispatched");
    Ok(())
}

/// Its worker stops it, and only then the new one runs.
async fn a_job_that_runs_is_replaced_when_it_has_ended(world: &World) -> Outcome {
    after_one(world, Overlap::Replace).await?;
    let claimed = world.take_one().await?;
    world.pass(1_000);
    let control = world.keys().control_queue_type(&"osis".parse()?);
    world.at(SLOT + 10_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.list(&control).await?, [FIRST]);
    same!(
        world.field(FIRST, "mw_stop").await?,
        Some(format!("replaced by {SECOND}"))
    );
    same!(world.waiting().await?, [""; 0]);
    world.fail(&claimed, FailureKind::Stopped).await?;
    world.broker.resolve_dependents().await?;
    same!(world.waiting().await?, [SECOND]);
    same!(world.status(SECOND).await?, "dispatched");
    Ok(())
}

/// A third job replaces the second, which still waits, and waits for the first in its place.
async fn a_job_that_waits_for_a_replaced_one_is_replaced(world: &World) -> Outcome {
    after_one(world, Overlap::Replace).await?;
    let claimed = world.take_one().await?;
    let control = world.keys().control_queue_type(&"osis".parse()?);
    for slot in [10_000, 20_000] {
        world.at(SLOT + slot);
        same!(tick(world).await?, (1, 1, 0));
        same!(world.list(&control).await?, [FIRST]);
        same!(world.waiting().await?, [""; 0]);
    }
    same!(world.status(SECOND).await?, "error");
    world.fail(&claimed, FailureKind::Stopped).await?;
    world.broker.resolve_dependents().await?;
    same!(world.waiting().await?, ["s.20231114T221350Z"]);
    Ok(())
}

/// The job has a stop request already, and still runs.
async fn a_job_that_is_to_stop_is_not_told_again(world: &World) -> Outcome {
    after_one(world, Overlap::Replace).await?;
    let claimed = world.take_one().await?;
    world.broker.cancel(&claimed.job, "stopped", false).await?;
    let control = world.keys().control_queue_type(&"osis".parse()?);
    let requests = world.list(&control).await?;
    world.at(SLOT + 10_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.list(&control).await?, requests);
    let reason = world.field(FIRST, "mw_stop").await?;
    same!(reason.as_deref(), Some("stopped"));
    Ok(())
}

/// Both jobs run.
async fn jobs_may_overlap(world: &World) -> Outcome {
    after_one(world, Overlap::Allow).await?;
    world.pass(10_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.waiting().await?, [FIRST, SECOND]);
    Ok(())
}
