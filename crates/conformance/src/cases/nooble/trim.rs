//! trim: removes from a stream the entries that all its groups have acknowledged, and dead workers, and nothing else.

use std::collections::HashMap;
use std::time::Duration;

use super::{
    Completion, Failure, GROUP, Got, HAND_WAITS, Outcome, Side, W1, W2, World, cases, check, same,
    texts,
};
use crate::cases::harness::world::START;

cases![
    what_is_done_is_deleted,
    what_is_young_is_kept,
    what_somebody_has_in_hand_is_kept,
    what_another_group_has_not_read_is_kept,
    without_a_group_nothing_is_deleted,
    ids_are_numbers,
    of_a_list_there_is_nothing_to_delete,
    who_is_gone_is_forgotten,
    who_may_come_back_is_known,
    an_end_of_an_earlier_version_is_taken_off,
    an_end_that_others_set_stays,
];

/// Time for which acknowledged entries are kept.
const KEEP: Duration = Duration::from_secs(60);
/// Time after which a worker counts as dead: longer than a case lasts.
const GONE: Duration = Duration::from_secs(3_600);

async fn trim(side: &Side<'_>) -> Got<usize> {
    Ok(side.verbs.trim(&side.source, KEEP, GONE).await?)
}

/// Creates a worker without messages.
async fn joined(side: &Side<'_>, worker: &str) -> Outcome {
    let words = ["XGROUP", "CREATECONSUMER", side.queue(), GROUP, worker];
    side.world.raw(&words).await
}

/// Returns the consumers of the group, by name.
async fn known(side: &Side<'_>) -> Got<Vec<String>> {
    let words = ["XINFO", "CONSUMERS", side.queue(), GROUP];
    let workers: Vec<HashMap<String, redis::Value>> = side.world.raw(&words).await?;
    let name = |worker: &HashMap<_, redis::Value>| redis::from_redis_value(worker["name"].clone());
    let names: Result<Vec<String>, _> = workers.iter().map(name).collect();
    names.map_err(|error| Failure::new(error.to_string()))
}

/// Adds messages with the same interval, the newest at `last`, and delivers all to a foreign worker.
async fn filled(side: &Side<'_>, many: u64, last: u64) -> Outcome {
    side.send(&[]).await?;
    let mut all = redis::pipe();
    for n in 0..many {
        let id = format!("{}-1", last - many + 1 + n);
        all.cmd("XADD")
            .arg(side.queue())
            .arg(id)
            .arg("data")
            .arg("x");
    }
    let mut read = redis::cmd("XREADGROUP");
    read.arg("GROUP")
        .arg(GROUP)
        .arg("python")
        .arg("COUNT")
        .arg(many);
    all.add_command(read.arg("STREAMS").arg(side.queue()).arg(">").clone());
    let filled: Result<redis::Value, _> = all.query_async(&mut side.world.conn().clone()).await;
    filled?;
    Ok(())
}

/// Acknowledges all messages except the last ones.
async fn acknowledged(side: &Side<'_>, but: usize) -> Outcome {
    let mut ids: Vec<_> = side.pending().await?.into_iter().map(|one| one.0).collect();
    ids.truncate(ids.len() - but);
    let mut words = vec!["XACK", side.queue(), GROUP];
    words.extend(ids.iter().map(String::as_str));
    side.world.raw(&words).await
}

async fn left(side: &Side<'_>) -> Result<usize, super::Failure> {
    side.world.raw(&["XLEN", side.queue()]).await
}

async fn what_is_done_is_deleted(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, START - 60_000).await?;
    acknowledged(&side, 0).await?;
    let deleted = trim(&side).await?;
    // Whole nodes of the stream are deleted, with a hundred entries each.
    check!(deleted >= 200);
    same!(left(&side).await?, 350 - deleted);
    same!(trim(&side).await?, 0);
    Ok(())
}

async fn what_is_young_is_kept(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, START - 59_000).await?;
    acknowledged(&side, 0).await?;
    world.at(START - 59_000 - 350 + 60_000);
    same!(trim(&side).await?, 0);
    same!(left(&side).await?, 350);
    Ok(())
}

async fn what_somebody_has_in_hand_is_kept(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, START - 60_000).await?;
    acknowledged(&side, 349).await?;
    trim(&side).await?;
    check!(left(&side).await? >= 349);
    Ok(())
}

async fn what_another_group_has_not_read_is_kept(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, START - 60_000).await?;
    acknowledged(&side, 0).await?;
    world
        .raw::<()>(&["XGROUP", "CREATE", side.queue(), "audit", "0"])
        .await?;
    same!(trim(&side).await?, 0);
    world
        .raw::<()>(&["XGROUP", "SETID", side.queue(), "audit", "$"])
        .await?;
    check!(trim(&side).await? >= 200);
    Ok(())
}

async fn without_a_group_nothing_is_deleted(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    same!(trim(&side).await?, 0);
    filled(&side, 350, START - 60_000).await?;
    world
        .raw::<()>(&["XGROUP", "DESTROY", side.queue(), GROUP])
        .await?;
    same!(trim(&side).await?, 0);
    world
        .raw::<()>(&["XGROUP", "CREATE", side.queue(), "audit", "0"])
        .await?;
    same!(trim(&side).await?, 0);
    same!(left(&side).await?, 350);
    Ok(())
}

/// As texts, 9 would come after 10; the second part counts where the first parts are equal.
async fn ids_are_numbers(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, 1_200).await?;
    acknowledged(&side, 0).await?;
    world.at(1_201 + 60_000);
    world
        .raw::<()>(&["XGROUP", "CREATE", side.queue(), "audit", "951-0"])
        .await?;
    let deleted = trim(&side).await?;
    check!(deleted <= 101);
    world
        .raw::<()>(&["XGROUP", "SETID", side.queue(), "audit", "1200-1"])
        .await?;
    world
        .raw::<()>(&["XGROUP", "CREATE", side.queue(), "second", "951-1"])
        .await?;
    check!(left(&side).await? >= 249);
    trim(&side).await?;
    check!(left(&side).await? >= 249);
    Ok(())
}

async fn of_a_list_there_is_nothing_to_delete(world: &World) -> Outcome {
    let [_, side] = Side::both(world)?;
    side.send(&["m1"]).await?;
    same!(
        side.verbs.trim(&side.source, Duration::ZERO, GONE).await?,
        0
    );
    same!(side.waiting().await?, ["m1"]);
    Ok(())
}

/// The time since its last command is that of the server's own clock.
async fn who_is_gone_is_forgotten(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    let taken = side.started("m1").await?;
    joined(&side, W2).await?;
    same!(known(&side).await?, [W1, W2]);
    side.verbs.trim(&side.source, KEEP, Duration::ZERO).await?;
    same!(known(&side).await?, [W1]);
    same!(side.hand(W1).await?, ["m1"]);
    side.verbs
        .complete(W1, &taken, Completion::default())
        .await?;
    side.verbs.trim(&side.source, KEEP, Duration::ZERO).await?;
    same!(known(&side).await?, Vec::<String>::new());
    side.send(&["m2"]).await?;
    same!(texts(&side.receive_as(W1, 1).await?), ["m2"]);
    Ok(())
}

async fn who_may_come_back_is_known(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.send(&[]).await?;
    for worker in [W1, "python"] {
        joined(&side, worker).await?;
    }
    trim(&side).await?;
    same!(known(&side).await?, [W1, "python"]);
    side.verbs.trim(&side.source, KEEP, Duration::ZERO).await?;
    same!(known(&side).await?, ["python"]);
    Ok(())
}

/// Earlier versions set a time to live of 30 days with each renewal.
async fn an_end_of_an_earlier_version_is_taken_off(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.started("m1").await?;
    for left in [HAND_WAITS, 60] {
        let left = left.to_string();
        world.raw::<()>(&["EXPIRE", side.queue(), &left]).await?;
        trim(&side).await?;
        same!(world.raw::<i64>(&["PTTL", side.queue()]).await?, -1);
    }
    Ok(())
}

/// A longer time to live was never set by Meshwork, nor was that of a stream without groups.
async fn an_end_that_others_set_stays(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    side.started("m1").await?;
    let later = (HAND_WAITS + 60).to_string();
    world.raw::<()>(&["EXPIRE", side.queue(), &later]).await?;
    trim(&side).await?;
    check!(side.ttl(side.queue()).await? > HAND_WAITS);
    world
        .raw::<()>(&["XGROUP", "DESTROY", side.queue(), GROUP])
        .await?;
    world.raw::<()>(&["EXPIRE", side.queue(), "60"]).await?;
    trim(&side).await?;
    same!(side.ttl(side.queue()).await?, 60);
    Ok(())
}
