//! configure: limits of concurrency and of rate for the jobs of a route that Meshwork runs.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_broker::bananas::{Completed, Requeue, RouteLimit};
use meshwork_model::name::RoutingKey;
use meshwork_model::queue::{MAX_CONCURRENCY, QueueSettings, Rate};
use meshwork_model::route::Priority;

use super::{Failure, Outcome, Side, TOOK, World, cases, check, ids, same};
use crate::cases::harness::world::{Got, LEASE_MS, WORKER};

cases![
    so_many_of_a_route_run_at_once,
    the_others_are_taken_meanwhile,
    what_runs_already_counts,
    each_end_frees_the_slot,
    a_lost_worker_frees_it_with_its_lease,
    a_slot_without_a_lease_is_none,
    slots_of_another_kind_hold_up_nobody,
    so_many_start_in_a_time,
    what_starts_in_one_call_counts,
    both_limits_hold,
    it_is_told_when_to_ask_again,
    what_came_to_it_goes_back,
    a_job_without_a_route_is_of_default,
    one_limit_changes_and_the_others_stay,
    another_rate_begins_anew,
    what_cannot_be_changes_nothing,
];

/// Interval between two checks for a free slot.
const LOOK: Duration = Duration::from_millis(200);

fn gpu() -> Got<RoutingKey> {
    Ok("gpu".parse()?)
}

async fn concurrency(side: &Side<'_>, most: Option<u64>) -> Outcome {
    let limit = [RouteLimit::Concurrency(most)];
    Ok(side.verbs.configure(&gpu()?, &limit).await?)
}

fn read(rate: &str) -> Got<Rate> {
    let read = rate.parse();
    read.map_err(|_| Failure::new("it is a rate"))
}

async fn rate(side: &Side<'_>, rate: &str) -> Outcome {
    let limit = [RouteLimit::Rate(Some(read(rate)?))];
    Ok(side.verbs.configure(&gpu()?, &limit).await?)
}

/// Returns the lists of a route, the most urgent first.
fn lists(side: &Side<'_>) -> Got<Vec<String>> {
    Ok(side.keys().lists(&[gpu()?]))
}

/// Pushes this many jobs to the lists of the route, one after the other.
async fn fill(side: &Side<'_>, jobs: usize) -> Outcome {
    let lists = lists(side)?;
    for job in 0..jobs {
        side.push(&lists[job % lists.len()], &format!("j{job}"))
            .await?;
    }
    Ok(())
}

/// Claims up to `want` jobs, and returns their number.
async fn start(side: &Side<'_>, want: usize) -> Got<usize> {
    Ok(side.claim(&lists(side)?, want).await?.jobs.len())
}

/// The limit is for all priorities of the route together.
async fn so_many_of_a_route_run_at_once(world: &World) -> Outcome {
    let side = Side::of(world)?;
    concurrency(&side, Some(2)).await?;
    fill(&side, 6).await?;
    let taken = side.claim(&lists(&side)?, 9).await?.jobs;
    same!(ids(&taken), ["j0", "j3"]);
    same!(start(&side, 9).await?, 0);
    side.finish(&taken[0], None).await?;
    same!(ids(&side.claim(&lists(&side)?, 9).await?.jobs), ["j1"]);
    concurrency(&side, None).await?;
    same!(start(&side, 9).await?, 3);
    Ok(())
}

/// A full route does not block any other one.
async fn the_others_are_taken_meanwhile(world: &World) -> Outcome {
    let side = Side::of(world)?;
    concurrency(&side, Some(1)).await?;
    fill(&side, 3).await?;
    side.put(&["a", "b"]).await?;
    let mut lists = lists(&side)?;
    lists.push(side.plain());
    let taken = side.claim(&lists, 9).await?;
    same!(ids(&taken.jobs), ["j0", "a", "b"]);
    let held: Vec<_> = taken.held.into_iter().map(|(list, _)| list).collect();
    same!(held, lists[..3]);
    Ok(())
}

/// The job was claimed before there was a limit.
async fn what_runs_already_counts(world: &World) -> Outcome {
    let side = Side::of(world)?;
    fill(&side, 5).await?;
    let taken = side.claim(&lists(&side)?, 2).await?.jobs;
    concurrency(&side, Some(2)).await?;
    same!(start(&side, 9).await?, 0);
    concurrency(&side, Some(3)).await?;
    same!(start(&side, 9).await?, 1);
    side.finish(&taken[0], None).await?;
    same!(start(&side, 9).await?, 1);
    Ok(())
}

/// Every kind of end of a run frees the slot.
async fn each_end_frees_the_slot(world: &World) -> Outcome {
    let side = Side::of(world)?;
    concurrency(&side, Some(1)).await?;
    side.renew(&[], &[gpu()?]).await?;
    let list = side.keys().routed(&gpu()?, Priority::Normal);
    for end in ["finish", "fail", "dead", "next", "last", "nowhere", "move"] {
        world.raw::<()>(&["DEL", &list]).await?;
        side.set(&side.keys().job(end), "{\"name\":\"n\"}").await?;
        side.push(&list, end).await?;
        let mut taken = side.claim(&lists(&side)?, 9).await?.jobs;
        same!((end, taken.len()), (end, 1));
        let claimed = taken.remove(0);
        match end {
            "finish" => _ = side.finish(&claimed, None).await?,
            "fail" => _ = side.verbs.fail(&claimed, "no", true, 9, TOOK).await?,
            "dead" => _ = side.verbs.fail(&claimed, "no", false, 9, TOOK).await?,
            "next" => _ = side.verbs.release(&claimed, Requeue::Next).await?,
            "last" => _ = side.verbs.release(&claimed, Requeue::Last).await?,
            "nowhere" => _ = side.verbs.release(&claimed, Requeue::Nowhere).await?,
            _ => {
                let gpu = gpu()?;
                let moved = side.verbs.move_to(&claimed, &gpu, Priority::Low);
                _ = moved.await?;
            }
        }
        let slots: usize = world.raw(&["EXISTS", &side.keys().slots(&gpu()?)]).await?;
        same!((end, slots), (end, 0));
    }
    Ok(())
}

/// The slot is free when another worker reclaims the job.
async fn a_lost_worker_frees_it_with_its_lease(world: &World) -> Outcome {
    let side = Side::of(world)?;
    concurrency(&side, Some(1)).await?;
    fill(&side, 4).await?;
    same!(start(&side, 9).await?, 1);
    world.pass(LEASE_MS - 1);
    same!(side.verbs.reclaim().await?.requeued.len(), 0);
    same!(start(&side, 9).await?, 0);
    world.pass(1);
    same!(side.verbs.reclaim().await?.requeued, [b"j0"]);
    let slots: usize = world.raw(&["EXISTS", &side.keys().slots(&gpu()?)]).await?;
    same!(slots, 0);
    same!(ids(&side.claim(&lists(&side)?, 9).await?.jobs), ["j0"]);
    same!(start(&side, 9).await?, 0);
    Ok(())
}

/// A slot without a lease does not count.
async fn a_slot_without_a_lease_is_none(world: &World) -> Outcome {
    let side = Side::of(world)?;
    concurrency(&side, Some(1)).await?;
    fill(&side, 2).await?;
    let slots = side.keys().slots(&gpu()?);
    world.raw::<()>(&["ZADD", &slots, "1", "ghost"]).await?;
    same!(start(&side, 9).await?, 1);
    let left: Vec<String> = world.raw(&["ZRANGE", &slots, "0", "-1"]).await?;
    same!(left, ["j0"]);
    Ok(())
}

/// Nor does a key of another type make a call fail half-way.
async fn slots_of_another_kind_hold_up_nobody(world: &World) -> Outcome {
    let side = Side::of(world)?;
    concurrency(&side, Some(1)).await?;
    side.set(&side.keys().slots(&gpu()?), "x").await?;
    fill(&side, 2).await?;
    let taken = side.claim(&lists(&side)?, 9).await?.jobs;
    same!(taken.len(), 2);
    check!(side.verbs.release(&taken[0], Requeue::Next).await?);
    same!(side.finish(&taken[1], None).await?, Completed::Finished);
    Ok(())
}

/// The limit is for all priorities of the route together, until its window is over.
async fn so_many_start_in_a_time(world: &World) -> Outcome {
    let side = Side::of(world)?;
    rate(&side, "window 2/10m").await?;
    fill(&side, 6).await?;
    same!(start(&side, 1).await?, 1);
    same!(start(&side, 9).await?, 1);
    world.pass(599_999);
    same!(start(&side, 9).await?, 0);
    world.pass(1);
    same!(start(&side, 9).await?, 2);
    Ok(())
}

/// A call that claims several jobs uses as many permits.
async fn what_starts_in_one_call_counts(world: &World) -> Outcome {
    let side = Side::of(world)?;
    rate(&side, "window 3/10m").await?;
    fill(&side, 6).await?;
    same!(start(&side, 2).await?, 2);
    same!(start(&side, 9).await?, 1);
    same!(start(&side, 9).await?, 0);
    Ok(())
}

/// The lower limit counts.
async fn both_limits_hold(world: &World) -> Outcome {
    let side = Side::of(world)?;
    rate(&side, "window 2/10m").await?;
    concurrency(&side, Some(1)).await?;
    fill(&side, 6).await?;
    let taken = side.claim(&lists(&side)?, 9).await?.jobs;
    same!(ids(&taken), ["j0"]);
    side.finish(&taken[0], None).await?;
    let taken = side.claim(&lists(&side)?, 9).await?.jobs;
    same!(ids(&taken), ["j3"]);
    side.finish(&taken[0], None).await?;
    same!(start(&side, 9).await?, 0);
    Ok(())
}

/// The answer says when to try again: soon where a slot may become free, and at the end of the window under a rate
/// limit. It names no list whose route may start jobs.
async fn it_is_told_when_to_ask_again(world: &World) -> Outcome {
    let side = Side::of(world)?;
    fill(&side, 6).await?;
    concurrency(&side, Some(2)).await?;
    check!(side.claim(&lists(&side)?, 1).await?.held.is_empty());
    let all = |wait: Duration| -> Got<Vec<_>> {
        Ok(lists(&side)?.into_iter().map(|list| (list, wait)).collect())
    };
    same!(side.claim(&lists(&side)?, 9).await?.held, all(LOOK)?);
    same!(side.claim(&lists(&side)?, 0).await?.held, all(LOOK)?);
    concurrency(&side, None).await?;
    rate(&side, "window 1/10m").await?;
    same!(start(&side, 1).await?, 1);
    world.pass(1_000);
    let wait = Duration::from_secs(599);
    same!(side.claim(&lists(&side)?, 9).await?.held, all(wait)?);
    Ok(())
}

/// The job becomes the next one of its list.
async fn what_came_to_it_goes_back(world: &World) -> Outcome {
    let side = Side::of(world)?;
    concurrency(&side, Some(1)).await?;
    let list = lists(&side)?.remove(1);
    for id in ["f1", "f2"] {
        side.push(&side.keys().feed(WORKER, &list), id).await?;
    }
    side.push(&list, "j1").await?;
    same!(ids(&side.claim(&lists(&side)?, 9).await?.jobs), ["f1"]);
    same!(side.list(&list).await?, ["f2", "j1"]);
    Ok(())
}

/// The record does not matter, because no worker has read it yet.
async fn a_job_without_a_route_is_of_default(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let (default, limit) = (RoutingKey::default(), [RouteLimit::Concurrency(Some(2))]);
    side.verbs.configure(&default, &limit).await?;
    let lists = side.keys().lists(std::slice::from_ref(&default));
    for list in &lists {
        side.push(list, list).await?;
    }
    side.set(&side.keys().job(&lists[1]), "{\"routing_key\":\"gpu\"}")
        .await?;
    let taken = side.claim(&lists, 9).await?;
    same!(ids(&taken.jobs), lists[..2]);
    same!(taken.held.len(), lists.len());
    Ok(())
}

/// A removed limit is deleted.
async fn one_limit_changes_and_the_others_stay(world: &World) -> Outcome {
    let side = Side::of(world)?;
    rate(&side, "10/min").await?;
    concurrency(&side, Some(2)).await?;
    concurrency(&side, Some(3)).await?;
    let set = side.verbs.limits().await?;
    same!(set.len(), 1);
    let QueueSettings {
        concurrency: most,
        rate: each,
        ..
    } = set[&gpu()?].clone();
    same!(most, Some(3));
    same!(each, Some(read("10/min")?));
    let all = [RouteLimit::Concurrency(None), RouteLimit::Rate(None)];
    side.verbs.configure(&gpu()?, &all).await?;
    same!(side.verbs.limits().await?, BTreeMap::new());
    let there: u8 = world.raw(&["EXISTS", &side.keys().config()]).await?;
    same!(there, 0);
    Ok(())
}

/// The usage of the earlier rate is deleted.
async fn another_rate_begins_anew(world: &World) -> Outcome {
    let side = Side::of(world)?;
    rate(&side, "window 1/10m").await?;
    fill(&side, 6).await?;
    same!(start(&side, 9).await?, 1);
    rate(&side, "window 2/10m").await?;
    same!(start(&side, 9).await?, 2);
    Ok(())
}

/// An invalid limit allows no start, or exceeds the greatest value.
async fn what_cannot_be_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let before = world.all().await?;
    for most in [0, MAX_CONCURRENCY + 1] {
        check!(concurrency(&side, Some(most)).await.is_err());
    }
    world.unchanged(&before).await
}
