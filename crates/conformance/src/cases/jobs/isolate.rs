//! isolate: losses of workers count against the job that ran alone.

use meshwork_model::job::limits::{MAX_LOST, SUSPECT_LOST};

use crate::cases::harness::world::WORKER;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    only_the_job_that_runs_alone_is_condemned,
    a_note_is_of_one_run,
    a_wrong_token_changes_nothing,
    a_job_that_does_not_run_is_not_noted,
    what_is_no_record_is_not_noted,
    a_retry_removes_the_note,
];

/// The innocent jobs are on the worker that the other one kills, but do not run beside it.
async fn only_the_job_that_runs_alone_is_condemned(world: &World) -> Outcome {
    world.put(&["a", "b", "killer"]).await?;
    for round in 0..MAX_LOST {
        let jobs = world.take(3).await?;
        same!((round, jobs.len()), (round, 3));
        if round >= SUSPECT_LOST {
            let killer = jobs.iter().find(|claimed| claimed.job.id == "killer");
            if let Some(claimed) = killer {
                check!(world.broker.isolate(claimed).await?);
            }
        }
        world.lose_all().await?;
    }
    same!(world.status("killer").await?, "error");
    same!(
        world.field("killer", "mw_dead").await?.as_deref(),
        Some("poison")
    );
    for id in ["a", "b"] {
        let job = world.read(id).await?;
        same!(
            (job.status.as_str(), job.lost),
            ("dispatched", SUSPECT_LOST)
        );
    }
    Ok(())
}

/// After the next claim, the note of the last one does not count.
async fn a_note_is_of_one_run(world: &World) -> Outcome {
    world.put(&["a"]).await?;
    for _ in 0..=SUSPECT_LOST {
        world.take_one().await?;
        world.lose_all().await?;
    }
    same!(world.read("a").await?.lost, SUSPECT_LOST + 1);
    same!(world.field("a", "mw_alone").await?, None);
    // It was noted, and released.
    let claimed = world.take_one().await?;
    world.broker.release(&claimed).await?;
    world.claim(WORKER, &[world.queue()], 1).await?;
    world.lose_all().await?;
    same!(world.read("a").await?.lost, SUSPECT_LOST + 1);
    Ok(())
}

/// Another worker has the job.
async fn a_wrong_token_changes_nothing(world: &World) -> Outcome {
    let old = world.started("a").await?;
    world.lose_all().await?;
    world.take_one().await?;
    let before = world.all().await?;
    check!(!world.broker.isolate(&old).await?);
    world.unchanged(&before).await
}

/// Its run has been reported.
async fn a_job_that_does_not_run_is_not_noted(world: &World) -> Outcome {
    let claimed = world.started("a").await?;
    world.finish(&claimed, "1").await?;
    check!(!world.broker.isolate(&claimed).await?);
    same!(world.field("a", "mw_alone").await?, None);
    Ok(())
}

/// A list of an older client may have the name of a job.
async fn what_is_no_record_is_not_noted(world: &World) -> Outcome {
    let claimed = world.started("a").await?;
    let key = world.key("a");
    world.raw::<()>(&["DEL", &key]).await?;
    world.raw::<()>(&["LPUSH", &key, "x"]).await?;
    let before = world.all().await?;
    check!(!world.broker.isolate(&claimed).await?);
    world.unchanged(&before).await
}

/// A retry by hand resets the losses and the note.
async fn a_retry_removes_the_note(world: &World) -> Outcome {
    let claimed = world.started("a").await?;
    check!(world.broker.isolate(&claimed).await?);
    world.finish(&claimed, "1").await?;
    world.broker.retry(&world.read("a").await?).await?;
    same!(world.field("a", "mw_alone").await?, None);
    Ok(())
}
