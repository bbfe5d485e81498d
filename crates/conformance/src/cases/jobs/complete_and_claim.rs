//! exchange: results and a claim in one step.

use meshwork_broker::{Completed, MAX_ITEMS};

use crate::cases::harness::options::{claim, exchange};
use crate::cases::harness::world::ids;
use crate::cases::{Failure, Outcome, World, cases, check, same};

use Completed::{Finished as Done, Stale};

cases![
    it_does_the_same_as_complete_and_claim,
    many_results_and_many_jobs,
    only_results_or_only_jobs,
    a_stale_result_is_told_by_its_place,
    said_again_it_only_claims,
    no_result_is_kept_where_no_lease_can_be_given,
    a_job_that_is_completed_twice_in_one_call_is_completed,
    a_failed_job_that_finishes_keeps_no_error,
];

/// The results are identical.
async fn it_does_the_same_as_complete_and_claim(world: &World) -> Outcome {
    let other = world.neighbour()?;
    for world in [world, &other] {
        world.put(&["a", "b"]).await?;
    }
    let (one, two) = (world.take_one().await?, other.take_one().await?);
    world.pass(5);
    other.pass(5);
    world.finish(&one, "42").await?;
    world.take_one().await?;
    let said = exchange(&other, &[&two], 1).await?;
    same!(said.finished, [Done]);
    same!(ids(&said.taken.jobs), ["b"]);
    let (should, is) = (world.all().await?, other.all().await?);
    other.raw::<()>(&["FLUSHDB"]).await?;
    crate::cases::harness::failure::same_text(&is, &should)
}

/// The answers are in order.
async fn many_results_and_many_jobs(world: &World) -> Outcome {
    world.put(&["a", "b", "c", "d", "e", "f"]).await?;
    let jobs = world.take(3).await?;
    let said = exchange(world, &[&jobs[2], &jobs[0], &jobs[1]], 2).await?;
    same!(said.finished, [Done, Done, Done]);
    same!(ids(&said.taken.jobs), ["d", "e"]);
    for id in ["a", "b", "c"] {
        same!(world.read(id).await?.output.as_deref(), Some(&b"42"[..]));
        same!(world.lease(id).await?, None);
    }
    same!(world.broker.running().await?, 2);
    same!(world.waiting().await?, ["f"]);
    Ok(())
}

/// A worker starts or stops.
async fn only_results_or_only_jobs(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    let said = exchange(world, &[], 1).await?;
    check!(said.finished.is_empty());
    same!(ids(&said.taken.jobs), ["a"]);
    let said = exchange(world, &[&said.taken.jobs[0]], 0).await?;
    same!(said.finished, [Done]);
    check!(said.taken.jobs.is_empty());
    same!(world.waiting().await?, ["b"]);
    check!(exchange(world, &[], MAX_ITEMS + 1).await.is_err());
    Ok(())
}

/// The other results of the call are still written.
async fn a_stale_result_is_told_by_its_place(world: &World) -> Outcome {
    world.put(&["a", "b", "c"]).await?;
    let jobs = world.take(3).await?;
    world.broker.cancel(&jobs[1].job, "stopped", true).await?;
    let said = exchange(world, &[&jobs[0], &jobs[1], &jobs[2]], 1).await?;
    same!(said.finished, [Done, Stale, Done]);
    same!(world.status("b").await?, "error");
    Ok(())
}

/// The call is repeated after a broken connection.
async fn said_again_it_only_claims(world: &World) -> Outcome {
    world.put(&["a", "b", "c"]).await?;
    let job = world.take_one().await?;
    exchange(world, &[&job], 1).await?;
    let before = world.record("a").await?;
    world.pass(7);
    let said = exchange(world, &[&job], 1).await?;
    same!(said.finished, [Done]);
    same!(ids(&said.taken.jobs), ["c"]);
    same!(world.record("a").await?, before);
    Ok(())
}

/// The call fails, and nothing changes.
async fn no_result_is_kept_where_no_lease_can_be_given(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    let job = world.take_one().await?;
    world
        .raw::<()>(&["SET", &world.keys().lease(), "x"])
        .await?;
    let before = world.all().await?;
    check!(exchange(world, &[&job], 1).await.is_err());
    world.unchanged(&before).await
}

/// The job is finished once.
async fn a_job_that_is_completed_twice_in_one_call_is_completed(world: &World) -> Outcome {
    let job = world.started("a").await?;
    let said = exchange(world, &[&job, &job], 0).await?;
    same!(said.finished, [Done, Done]);
    let figures = world.keys().queue_stats_key(&world.queue());
    let finished: u64 = world.raw(&["HGET", &figures, "finished"]).await?;
    same!(finished, 1);
    Ok(())
}

/// Nor does it keep other fields of the run before: that it failed, was lost, or had a stop request.
async fn a_failed_job_that_finishes_keeps_no_error(world: &World) -> Outcome {
    let mut job = world.job("a")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let first = world.take_one().await?;
    world
        .fail(&first, meshwork_model::outcome::FailureKind::Script)
        .await?;
    let second = claim(world, 1).await?.jobs;
    let second = second.first().ok_or_else(|| Failure::new("not claimed"))?;
    exchange(world, &[second], 0).await?;
    same!(world.field("a", "error").await?, None);
    let lost = world.started("b").await?;
    world.broker.cancel(&lost.job, "x", false).await?;
    exchange(world, &[&lost], 0).await?;
    same!(world.field("b", "mw_stop").await?, None);
    Ok(())
}
