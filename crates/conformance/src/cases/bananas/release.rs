//! release: a job that is not run returns to its list.

use super::{Outcome, Side, World, cases, check, same};
use meshwork_broker::bananas::Requeue;

cases![
    goes_back_as_the_next_or_the_last,
    costs_nothing,
    what_is_done_already_stands_nowhere,
    a_record_that_has_changed_stays,
    refuses_another_token,
    no_list_any_more_changes_nothing,
];

/// The job returns to the list that it came from.
async fn goes_back_as_the_next_or_the_last(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for (to, expected) in [(Requeue::Next, ["j1", "j2"]), (Requeue::Last, ["j2", "j1"])] {
        side.put(&["j1", "j2"]).await?;
        let list = side.keys().routed(&"gpu".parse()?, Default::default());
        world.raw::<()>(&["RENAME", &side.plain(), &list]).await?;
        let claimed = side.claim(std::slice::from_ref(&list), 1).await?.jobs;
        check!(side.verbs.release(&claimed[0], to).await?);
        same!(side.list(&list).await?, expected);
        for key in [list, side.keys().job("j1"), side.keys().job("j2")] {
            world.raw::<()>(&["DEL", &key]).await?;
        }
    }
    Ok(())
}

/// The state is as before the claim.
async fn costs_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1"]).await?;
    // The counters still change.
    let stats = side.keys().stats();
    world.raw::<()>(&["DEL", &stats]).await?;
    let before = world.all().await?;
    let claimed = side.take_one().await?;
    check!(side.verbs.release(&claimed, Requeue::Next).await?);
    world.raw::<()>(&["DEL", &stats]).await?;
    world.unchanged(&before).await
}

/// The id was pushed twice.
async fn what_is_done_already_stands_nowhere(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    check!(side.verbs.release(&claimed, Requeue::Nowhere).await?);
    check!(side.list(&side.plain()).await?.is_empty());
    check!(side.says("j1", "\"status\":\"completed\"").await?);
    same!(side.ttl(&side.keys().job("j1")).await?, 86_400);
    side.idle().await?;
    // The id is pushed again, as by two schedulers.
    side.push(&side.plain(), "j1").await?;
    let (claimed, record) = (side.take_one().await?, side.record("j1").await?);
    check!(claimed.is_done());
    check!(side.verbs.release(&claimed, Requeue::Nowhere).await?);
    same!(side.record("j1").await?, record);
    side.idle().await
}

/// The id was used for another job.
async fn a_record_that_has_changed_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.set(&side.keys().job("j1"), "{}").await?;
    check!(side.verbs.release(&claimed, Requeue::Nowhere).await?);
    same!(side.record("j1").await?.as_deref(), Some("{}"));
    side.idle().await
}

/// A worker that was taken for dead changes nothing.
async fn refuses_another_token(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut claimed = side.started("j1").await?;
    claimed.token = "t9".to_owned();
    let before = world.all().await?;
    check!(!side.verbs.release(&claimed, Requeue::Next).await?);
    world.unchanged(&before).await
}

/// The job returns when its lease expires, if the list is usable.
async fn no_list_any_more_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.set(&side.plain(), "x").await?;
    let before = world.all().await?;
    check!(side.verbs.release(&claimed, Requeue::Next).await.is_err());
    world.unchanged(&before).await
}
