//! renew: a live worker keeps its jobs, and learns which it has lost.

use meshwork_broker::{Error, MAX_ITEMS};

use crate::cases::harness::world::{ALIVE_MS, LEASE_MS, START, WORKER};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    extends_the_leases,
    keeps_a_long_job_for_as_long_as_it_lasts,
    saves_a_lease_that_ended_untaken,
    tells_what_was_stopped,
    tells_what_was_taken_back,
    tells_what_another_worker_has,
    tells_what_has_ended,
    tells_what_was_deleted,
    gives_a_lease_again_that_the_set_has_lost,
    extends_no_lease_of_what_has_ended,
    keeps_the_rest,
    changes_nothing_but_the_lease,
    registers_the_listener_without_jobs,
    refuses_more_than_a_thousand,
];

/// The lease of each job expires one lease from now.
async fn extends_the_leases(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    let held = world.take(2).await?;
    world.pass(4_000);
    check!(world.renew(WORKER, &held).await?.is_empty());
    for id in ["j1", "j2"] {
        same!(world.lease(id).await?, Some(START + 4_000 + LEASE_MS));
    }
    Ok(())
}

/// A job that is renewed in time is never reclaimed.
async fn keeps_a_long_job_for_as_long_as_it_lasts(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    for _ in 0..10 {
        world.pass(LEASE_MS - 1);
        check!(world.renew(WORKER, &held).await?.is_empty());
        check!(world.broker.reclaim().await?.requeued.is_empty());
    }
    same!(world.status("j1").await?, "started");
    world.pass(LEASE_MS);
    same!(world.broker.reclaim().await?.requeued, ["j1"]);
    Ok(())
}

/// The worker can still renew an expired lease that was not reclaimed.
async fn saves_a_lease_that_ended_untaken(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    world.pass(LEASE_MS + 1);
    check!(world.renew(WORKER, &held).await?.is_empty());
    check!(world.broker.reclaim().await?.requeued.is_empty());
    Ok(())
}

/// The worker learns here that the job was cancelled.
async fn tells_what_was_stopped(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    world.broker.cancel(&held[0].job, "stopped", true).await?;
    same!(world.renew(WORKER, &held).await?, ["j1"]);
    same!(world.lease("j1").await?, None);
    Ok(())
}

/// A requeued job does not belong to the old worker, even while no other worker has it.
async fn tells_what_was_taken_back(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    world.lose_all().await?;
    same!(world.renew(WORKER, &held).await?, ["j1"]);
    same!(world.lease("j1").await?, None);
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// A stale worker does not extend the lease of the current one.
async fn tells_what_another_worker_has(world: &World) -> Outcome {
    let stale = [world.started("j1").await?];
    world.lose_all().await?;
    world.claim("w2-b", &[world.queue()], 1).await?;
    let lease = world.lease("j1").await?;
    world.pass(5_000);
    same!(world.renew(WORKER, &stale).await?, ["j1"]);
    same!(world.lease("j1").await?, lease);
    Ok(())
}

/// An ended job gets no new lease.
async fn tells_what_has_ended(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    world.finish(&held[0], "42").await?;
    same!(world.renew(WORKER, &held).await?, ["j1"]);
    same!(world.lease("j1").await?, None);
    Ok(())
}

/// A deleted job is not created again in part.
async fn tells_what_was_deleted(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    world.raw::<()>(&["DEL", &world.key("j1")]).await?;
    same!(world.renew(WORKER, &held).await?, ["j1"]);
    check!(world.record("j1").await?.is_empty());
    Ok(())
}

/// The token says that the worker has the job.
async fn gives_a_lease_again_that_the_set_has_lost(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    world.raw::<()>(&["DEL", &world.keys().lease()]).await?;
    check!(world.renew(WORKER, &held).await?.is_empty());
    same!(world.lease("j1").await?, Some(START + LEASE_MS));
    Ok(())
}

/// This holds even if a lease is left by mistake.
async fn extends_no_lease_of_what_has_ended(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    world.finish(&held[0], "42").await?;
    let lease = world.keys().lease();
    world.raw::<()>(&["ZADD", &lease, "1", "j1"]).await?;
    same!(world.renew(WORKER, &held).await?, ["j1"]);
    same!(world.lease("j1").await?, Some(1));
    Ok(())
}

/// A lost job does not affect the others.
async fn keeps_the_rest(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let held = world.take(3).await?;
    world.broker.cancel(&held[1].job, "stopped", true).await?;
    world.pass(1_000);
    same!(world.renew(WORKER, &held).await?, ["j2"]);
    for id in ["j1", "j3"] {
        same!(world.lease(id).await?, Some(START + 1_000 + LEASE_MS));
    }
    Ok(())
}

/// The record is not written, because renewals are frequent.
async fn changes_nothing_but_the_lease(world: &World) -> Outcome {
    let held = [world.started("j1").await?];
    let before = world.record("j1").await?;
    world.pass(1_000);
    world.renew(WORKER, &held).await?;
    same!(world.record("j1").await?, before);
    Ok(())
}

/// An idle worker still renews its registration.
async fn registers_the_listener_without_jobs(world: &World) -> Outcome {
    check!(world.renew(WORKER, &[]).await?.is_empty());
    same!(world.listener(WORKER).await?, Some(START + ALIVE_MS));
    world.pass(3_000);
    world.renew(WORKER, &[]).await?;
    same!(
        world.listener(WORKER).await?,
        Some(START + 3_000 + ALIVE_MS)
    );
    Ok(())
}

/// A bound keeps calls from blocking the server.
async fn refuses_more_than_a_thousand(world: &World) -> Outcome {
    let held = vec![world.started("j1").await?; MAX_ITEMS + 1];
    let refused = world.try_renew(WORKER, &held).await;
    check!(matches!(refused, Err(Error::TooMany { verb: "renew", .. })));
    Ok(())
}
