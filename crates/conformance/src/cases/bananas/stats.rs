//! stats: counts the events of a route's jobs.

use std::time::Duration;

use meshwork_broker::bananas::{Completion, QueueStats, Requeue};
use meshwork_model::bananas::ClientVariant;
use meshwork_model::name::RoutingKey;
use meshwork_model::route::Priority;

use super::{Outcome, Side, TOOK, World, cases, check, same};
use crate::cases::harness::world::{Got, LEASE_MS};

cases![
    counts_each_step_of_a_job,
    counts_all_that_end_in_one_call,
    counts_what_is_stored,
    counts_what_is_not_run,
    counts_what_is_lost,
    counts_an_entry_without_a_record,
    tells_of_both_kinds_of_lists_as_one,
    tells_what_waits_and_for_how_long,
    tells_what_runs,
    is_empty_where_nothing_is,
    a_report_that_is_refused_counts_nothing,
    counts_of_another_kind_hold_up_nobody,
];

/// Returns the counters of jobs without a route or priority.
async fn plain(side: &Side<'_>) -> Got<QueueStats> {
    let mut stats = side.verbs.stats().await?;
    let place = (RoutingKey::default(), Priority::Normal);
    Ok(stats.places.remove(&place).unwrap_or_default())
}

/// From its start to its end.
async fn counts_each_step_of_a_job(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.put(&["j2", "j3"]).await?;
    let others = side.take(9).await?;
    same!(plain(&side).await?.started, 3);
    side.finish(&claimed, None).await?;
    side.verbs.fail(&others[0], "no", true, 9, TOOK).await?;
    side.verbs.fail(&others[1], "no", false, 9, TOOK).await?;
    let stats = plain(&side).await?;
    same!((stats.finished, stats.retried), (1, 1));
    same!((stats.failed, stats.dead), (1, 1));
    same!(Duration::from_millis(stats.run_ms), TOOK * 3);
    Ok(())
}

/// The duration of each run is counted too.
async fn counts_all_that_end_in_one_call(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1", "j2", "j3"]).await?;
    let taken = side.take(9).await?;
    let ended = taken.iter().map(|claimed| Completion {
        claimed,
        result: None,
        took: TOOK,
    });
    side.verbs.complete(&ended.collect::<Vec<_>>()).await?;
    let stats = plain(&side).await?;
    same!(stats.finished, 3);
    same!(Duration::from_millis(stats.run_ms), TOOK * 3);
    Ok(())
}

/// Jobs for a list and delayed jobs count, from Meshwork's clients and schedules.
async fn counts_what_is_stored(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let (mut later, mut routed) = (side.job("j2")?, side.job("j3")?);
    later.at_ms = Some(1);
    routed.route = Some("gpu".parse()?);
    let jobs = [side.job("j1")?, later, routed];
    side.verbs.enqueue(&jobs, ClientVariant::Go).await?;
    // The job exists already.
    side.verbs.enqueue(&jobs[..1], ClientVariant::Go).await?;
    let counts = side.verbs.stats().await?.places;
    let created = |route: &str| -> Got<u64> {
        let place = (route.parse()?, Priority::Normal);
        Ok(counts.get(&place).map_or(0, |place| place.created))
    };
    same!((created("default")?, created("gpu")?), (2, 1));
    Ok(())
}

/// The jobs are released, forwarded, or already done.
async fn counts_what_is_not_run(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu = "gpu".parse()?;
    side.renew(&[], std::slice::from_ref(&gpu)).await?;
    for (at, to) in [Requeue::Next, Requeue::Last, Requeue::Nowhere]
        .into_iter()
        .enumerate()
    {
        world.raw::<()>(&["DEL", &side.plain()]).await?;
        let claimed = side.started(&format!("j{at}")).await?;
        side.verbs.release(&claimed, to).await?;
        same!(plain(&side).await?.released, at as u64 + 1);
    }
    let claimed = side.started("j9").await?;
    side.verbs.move_to(&claimed, &gpu, Priority::Low).await?;
    let stats = plain(&side).await?;
    same!((stats.released, stats.started, stats.run_ms), (4, 4, 0));
    Ok(())
}

/// The job is lost with its worker.
async fn counts_what_is_lost(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.started("j1").await?;
    world.pass(LEASE_MS);
    side.verbs.reclaim().await?;
    let stats = plain(&side).await?;
    same!((stats.lost, stats.started, stats.waiting), (1, 1, 1));
    Ok(())
}

/// The entry counts as a job without a route.
async fn counts_an_entry_without_a_record(world: &World) -> Outcome {
    let side = Side::of(world)?;
    world
        .raw::<()>(&["ZADD", &side.keys().scheduled(), "1", "ghost"])
        .await?;
    same!(side.promote().await?.buried, 1);
    let stats = plain(&side).await?;
    same!((stats.dead, stats.failed), (1, 0));
    Ok(())
}

/// Both lists of `default` are counted together.
async fn tells_of_both_kinds_of_lists_as_one(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.renew(&[], &[RoutingKey::default()]).await?;
    let lists = side.keys().lists(&[RoutingKey::default()]);
    for list in &lists {
        side.push(list, list).await?;
    }
    side.claim(&lists, 4).await?;
    let counts = side.verbs.stats().await?.places;
    let of = |priority| &counts[&(RoutingKey::default(), priority)];
    for (priority, started, waiting) in [
        (Priority::High, 2, 0),
        (Priority::Normal, 2, 0),
        (Priority::Low, 0, 2),
    ] {
        let place = of(priority);
        same!((place.started, place.waiting), (started, waiting));
    }
    same!(counts.len(), 3);
    Ok(())
}

/// The age is counted from the time in the record.
async fn tells_what_waits_and_for_how_long(world: &World) -> Outcome {
    let side = Side::of(world)?;
    same!(plain(&side).await?.oldest_ms, None);
    side.put(&["j1"]).await?;
    world.pass(7_000);
    side.put(&["j2"]).await?;
    world.pass(1_000);
    let stats = plain(&side).await?;
    same!((stats.waiting, stats.oldest_ms), (2, Some(8_000)));
    side.take_one().await?;
    same!(plain(&side).await?.oldest_ms, Some(1_000));
    side.take_one().await?;
    // One record is too large to be read, and one is missing.
    let large = format!(
        "{{\"created_at\":\"2023-11-14T22:13:20Z\",\"payload\":\"{}\"}}",
        "x".repeat(65_536)
    );
    side.put_text("j3", &large).await?;
    let stats = plain(&side).await?;
    same!((stats.waiting, stats.oldest_ms), (1, None));
    world.raw::<()>(&["DEL", &side.keys().job("j3")]).await?;
    same!(plain(&side).await?.oldest_ms, None);
    Ok(())
}

/// The counts are by route, and include each entry of Bananas' list.
async fn tells_what_runs(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu: RoutingKey = "gpu".parse()?;
    let list = side.keys().routed(&gpu, Priority::High);
    for id in ["g1", "g2"] {
        side.push(&list, id).await?;
    }
    side.put(&["j1"]).await?;
    side.push(&side.keys().processing(), "theirs").await?;
    let taken = side.claim(&[list, side.plain()], 9).await?.jobs;
    let counts = side.verbs.stats().await?;
    same!((counts.running[&gpu], counts.processing), (2, 4));
    same!(counts.running[&RoutingKey::default()], 1);
    side.verbs.fail(&taken[2], "no", true, 9, TOOK).await?;
    side.verbs.fail(&taken[0], "no", false, 9, TOOK).await?;
    let counts = side.verbs.stats().await?;
    same!((counts.running[&gpu], counts.processing), (1, 2));
    same!((counts.scheduled, counts.dead), (1, 1));
    Ok(())
}

/// Only the lists to which all clients push, and the routes of registered workers, are shown.
async fn is_empty_where_nothing_is(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.renew(&[], &["gpu".parse()?]).await?;
    let counts = side.verbs.stats().await?;
    same!(counts.places.len(), 6);
    check!(
        counts
            .places
            .values()
            .all(|it| *it == QueueStats::default())
    );
    same!(
        (counts.scheduled, counts.processing, counts.dead),
        (0, 0, 0)
    );
    Ok(())
}

/// A repeated report counts nothing either.
async fn a_report_that_is_refused_counts_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.finish(&claimed, None).await?;
    let before = plain(&side).await?;
    side.finish(&claimed, None).await?;
    side.verbs.fail(&claimed, "no", false, 9, TOOK).await?;
    side.verbs.release(&claimed, Requeue::Next).await?;
    same!(plain(&side).await?, before);
    Ok(())
}

/// Jobs still run and end.
async fn counts_of_another_kind_hold_up_nobody(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.set(&side.keys().stats(), "x").await?;
    let claimed = side.started("j1").await?;
    side.finish(&claimed, None).await?;
    side.idle().await
}
