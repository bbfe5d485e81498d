//! trim: a stream loses what all its groups have done with, and nothing else.

use std::time::Duration;

use super::super::world::START;
use super::{GROUP, Outcome, Side, World, cases, check, same};

cases![
    what_is_done_is_deleted,
    what_is_young_is_kept,
    what_somebody_has_in_hand_is_kept,
    what_another_group_has_not_read_is_kept,
    without_a_group_nothing_is_deleted,
    ids_are_numbers,
    of_a_list_there_is_nothing_to_delete,
];

/// For how long is kept what is done.
const KEEP: Duration = Duration::from_secs(60);

/// So many messages of one age, the newest at `last`; all were given to a worker of another make.
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

/// It acknowledges all but the last so many.
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
    let deleted = side.verbs.trim(&side.source, KEEP).await?;
    // Whole nodes of the stream go, which hold a hundred each.
    check!(deleted >= 200);
    same!(left(&side).await?, 350 - deleted);
    same!(side.verbs.trim(&side.source, KEEP).await?, 0);
    Ok(())
}

async fn what_is_young_is_kept(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, START - 59_000).await?;
    acknowledged(&side, 0).await?;
    world.at(START - 59_000 - 350 + 60_000);
    same!(side.verbs.trim(&side.source, KEEP).await?, 0);
    same!(left(&side).await?, 350);
    Ok(())
}

async fn what_somebody_has_in_hand_is_kept(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, START - 60_000).await?;
    acknowledged(&side, 349).await?;
    side.verbs.trim(&side.source, KEEP).await?;
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
    same!(side.verbs.trim(&side.source, KEEP).await?, 0);
    world
        .raw::<()>(&["XGROUP", "SETID", side.queue(), "audit", "$"])
        .await?;
    check!(side.verbs.trim(&side.source, KEEP).await? >= 200);
    Ok(())
}

async fn without_a_group_nothing_is_deleted(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    same!(side.verbs.trim(&side.source, KEEP).await?, 0);
    filled(&side, 350, START - 60_000).await?;
    world
        .raw::<()>(&["XGROUP", "DESTROY", side.queue(), GROUP])
        .await?;
    same!(side.verbs.trim(&side.source, KEEP).await?, 0);
    same!(left(&side).await?, 350);
    Ok(())
}

/// As texts, 9 would come after 10, and its second part counts where the first is the same.
async fn ids_are_numbers(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    filled(&side, 350, 1_200).await?;
    acknowledged(&side, 0).await?;
    world.at(1_201 + 60_000);
    world
        .raw::<()>(&["XGROUP", "CREATE", side.queue(), "audit", "951-0"])
        .await?;
    let deleted = side.verbs.trim(&side.source, KEEP).await?;
    check!(deleted <= 101);
    world
        .raw::<()>(&["XGROUP", "SETID", side.queue(), "audit", "1200-1"])
        .await?;
    world
        .raw::<()>(&["XGROUP", "CREATE", side.queue(), "second", "951-1"])
        .await?;
    check!(left(&side).await? >= 249);
    side.verbs.trim(&side.source, KEEP).await?;
    check!(left(&side).await? >= 249);
    Ok(())
}

async fn of_a_list_there_is_nothing_to_delete(world: &World) -> Outcome {
    let [_, side] = Side::both(world)?;
    side.send(&["m1"]).await?;
    same!(side.verbs.trim(&side.source, Duration::ZERO).await?, 0);
    same!(side.waiting().await?, ["m1"]);
    Ok(())
}
