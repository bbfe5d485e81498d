//! reclaim: requeues the jobs of dead Meshwork workers. leave: returns the prefetched jobs of a worker that shuts
//! down.

use meshwork_broker::bananas::Reclaimed;
use meshwork_model::keys::bananas::BananasKeys as Keys;

use super::{Outcome, Side, World, cases, check, same};
use crate::cases::harness::world::{ALIVE_MS, LEASE_MS, WORKER};

cases![
    leaves_what_is_leased,
    goes_back_as_the_next,
    counts_the_loss,
    leaves_what_is_theirs,
    a_list_of_another_kind_holds_up_no_other,
    takes_back_a_bounded_number,
    hands_back_what_waited_for_a_listener,
    forgets_routes_that_nobody_takes,
    a_lease_of_nobody_ends,
    what_names_a_list_of_others_goes_to_the_plain_one,
    a_worker_that_deregisters_returns_its_prefetched_ids,
];

/// A live worker keeps the jobs that it runs.
async fn leaves_what_is_leased(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.started("j1").await?;
    world.pass(LEASE_MS - 1);
    let before = world.all().await?;
    same!(side.verbs.reclaim().await?, Reclaimed::default());
    world.unchanged(&before).await
}

/// The job returns to its list, and no key of Meshwork is left.
async fn goes_back_as_the_next(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1", "j2"]).await?;
    let record = side.record("j1").await?;
    side.take_one().await?;
    world.pass(LEASE_MS);
    same!(side.verbs.reclaim().await?.requeued, [b"j1"]);
    same!(side.list(&side.plain()).await?, ["j1", "j2"]);
    same!(side.record("j1").await?, record);
    side.idle().await
}

/// The count is apart from failures, and has a limit.
async fn counts_the_loss(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1"]).await?;
    for lost in 0..3 {
        same!(side.take_one().await?.lost, lost);
        world.pass(LEASE_MS);
        side.verbs.reclaim().await?;
    }
    let key = side.keys().lease().replace("lease", "lost:j1");
    same!(side.ttl(&key).await?, 86_400);
    Ok(())
}

/// A worker of Bananas may still run its job.
async fn leaves_what_is_theirs(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.keys().processing(), "theirs").await?;
    side.started("j1").await?;
    world.pass(100 * LEASE_MS);
    side.verbs.reclaim().await?;
    same!(side.list(&side.keys().processing()).await?, ["theirs"]);
    Ok(())
}

/// The job returns when its list is usable.
async fn a_list_of_another_kind_holds_up_no_other(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let list = side.keys().routed(&"gpu".parse()?, Default::default());
    side.push(&list, "j0").await?;
    side.claim(std::slice::from_ref(&list), 1).await?;
    side.set(&list, "x").await?;
    side.started("j1").await?;
    world.pass(LEASE_MS);
    same!(side.verbs.reclaim().await?.requeued, [b"j1"]);
    world.raw::<()>(&["DEL", &list]).await?;
    same!(side.verbs.reclaim().await?.requeued, [b"j0"]);
    same!(side.list(&list).await?, ["j0"]);
    Ok(())
}

/// The next call reclaims the rest.
async fn takes_back_a_bounded_number(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for id in 0..201 {
        side.push(&side.plain(), &format!("j{id}")).await?;
    }
    side.take(300).await?;
    world.pass(LEASE_MS);
    same!(side.verbs.reclaim().await?.requeued.len(), 200);
    same!(side.verbs.reclaim().await?.requeued.len(), 1);
    Ok(())
}

/// The id was prefetched by a worker that died.
async fn hands_back_what_waited_for_a_listener(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.renew(&[], &[]).await?;
    let feed = side.keys().feed(WORKER, &side.plain());
    side.push(&feed, "f1").await?;
    side.push(&feed, "f2").await?;
    side.put(&["j1"]).await?;
    same!(side.verbs.reclaim().await?.moved, 0);
    world.pass(ALIVE_MS);
    same!(side.verbs.reclaim().await?.moved, 2);
    same!(side.list(&side.plain()).await?, ["f1", "f2", "j1"]);
    let member = Keys::prefetch_member(WORKER, &side.plain());
    let still: Option<String> = world
        .raw(&["ZSCORE", &side.keys().prefetch_registry(), &member])
        .await?;
    check!(still.is_some());
    Ok(())
}

/// The set of routes does not grow without bound.
async fn forgets_routes_that_nobody_takes(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.renew(&[], &["gpu".parse()?]).await?;
    world.pass(ALIVE_MS - 1);
    side.verbs.reclaim().await?;
    let routes = side.keys().routes();
    same!(world.raw::<u8>(&["ZCARD", &routes]).await?, 1);
    world.pass(1);
    side.verbs.reclaim().await?;
    same!(world.raw::<u8>(&["ZCARD", &routes]).await?, 0);
    Ok(())
}

/// The record of the jobs' holder was deleted, so there is no list to return them to.
async fn a_lease_of_nobody_ends(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.started("j1").await?;
    world.raw::<()>(&["DEL", &side.keys().held()]).await?;
    world.pass(LEASE_MS);
    same!(side.verbs.reclaim().await?, Reclaimed::default());
    side.idle().await
}

/// The jobs return at once, and the worker's registration ends.
async fn a_worker_that_deregisters_returns_its_prefetched_ids(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.renew(&[], &[]).await?;
    let feed = side.keys().feed(WORKER, &side.plain());
    side.push(&feed, "f1").await?;
    side.put(&["j1"]).await?;
    let lists = [side.plain()];
    same!(side.verbs.deregister(WORKER, &lists).await?, 1);
    same!(side.list(&side.plain()).await?, ["f1", "j1"]);
    same!(
        world
            .raw::<u8>(&["ZCARD", &side.keys().prefetch_registry()])
            .await?,
        0
    );
    Ok(())
}

/// Others may write the hash of leases and the registry of prefetch lists too.
async fn what_names_a_list_of_others_goes_to_the_plain_one(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let others = format!("others-{}", world.keys().namespace());
    let lists = [others, side.keys().processing(), side.keys().dead()];
    for (id, list) in ["j1", "j2", "j3"].into_iter().zip(&lists) {
        let claimed = side.started(id).await?;
        let lease = format!("{} {list}", claimed.token);
        let held = side.keys().held();
        world.raw::<()>(&["HSET", &held, id, &lease]).await?;
    }
    let feed = side.keys().feed("w", &lists[0]);
    side.push(&feed, "j4").await?;
    let member = Keys::prefetch_member("w", &lists[0]);
    let feeds = side.keys().prefetch_registry();
    world.raw::<()>(&["ZADD", &feeds, "1", &member]).await?;
    world.pass(LEASE_MS);
    side.verbs.reclaim().await?;
    let mut ids = side.list(&side.plain()).await?;
    ids.sort();
    same!(ids, ["j1", "j2", "j3", "j4"]);
    for list in &lists {
        same!(world.raw::<u32>(&["EXISTS", list]).await?, 0);
    }
    Ok(())
}
