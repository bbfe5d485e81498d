//! renew: extends leases and the registration of a worker.

use super::{Outcome, Side, World, cases, check, same};
use crate::cases::harness::world::{ALIVE_MS, LEASE_MS, START, WORKER};
use meshwork_broker::bananas::Requeue;
use meshwork_model::keys::bananas::BananasKeys as Keys;

cases![
    extends_the_leases,
    names_what_is_this_workers_no_more,
    says_where_it_listens_and_for_whom,
];

/// The new lease starts now.
async fn extends_the_leases(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = [side.started("j1").await?];
    world.pass(1_000);
    check!(side.renew(&claimed, &[]).await?.is_empty());
    let lease: u64 = world.raw(&["ZSCORE", &side.keys().lease(), "j1"]).await?;
    same!(lease, START + 1_000 + LEASE_MS);
    Ok(())
}

/// A job of another worker, or of none, gets no lease.
async fn names_what_is_this_workers_no_more(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut other = side.started("j1").await?;
    other.token = "t9".to_owned();
    let ended = side.started("j2").await?;
    side.verbs.release(&ended, Requeue::Next).await?;
    let before: Vec<String> = world
        .raw(&["ZRANGE", &side.keys().lease(), "0", "-1", "WITHSCORES"])
        .await?;
    world.pass(1_000);
    let gone = side.renew(&[other, ended], &[]).await?;
    same!(gone, [b"j1", b"j2"]);
    let after: Vec<String> = world
        .raw(&["ZRANGE", &side.keys().lease(), "0", "-1", "WITHSCORES"])
        .await?;
    same!(after, before);
    Ok(())
}

/// Both registrations expire by themselves.
async fn says_where_it_listens_and_for_whom(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = [side.started("j1").await?];
    let routes = ["gpu".parse()?, "default".parse()?];
    check!(side.renew(&claimed, &routes).await?.is_empty());
    let member = Keys::prefetch_member(WORKER, &side.plain());
    for (key, members) in [
        (side.keys().prefetch_registry(), vec![member.as_str()]),
        (side.keys().routes(), vec!["default", "gpu"]),
    ] {
        let is: Vec<String> = world.raw(&["ZRANGE", &key, "0", "-1"]).await?;
        same!(is, members);
        let until: u64 = world.raw(&["ZSCORE", &key, members[0]]).await?;
        same!(until, START + ALIVE_MS);
    }
    Ok(())
}
