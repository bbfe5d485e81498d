//! The other side of a migration: an old list, and workers that follow Hero's protocol only. They pop an id, write
//! `started`, run the job, and write its end; they use no key of Meshwork.

use crate::cases::{Failure, Outcome, World};

/// Time after which a job that is gone from its old list counts as lost, in milliseconds.
pub(crate) const AGE: u64 = 1_000;

/// Returns the old list of type `osis`.
pub(crate) fn old(world: &World) -> String {
    world.key("actor_queue:osis")
}

/// Sets the phase of the migration of type `osis`.
pub(crate) async fn migrate(world: &World, phase: &str) -> Outcome {
    set(world, "osis", &format!("{phase} {} {AGE}", old(world))).await
}

/// Sets the migration of a type.
pub(crate) async fn set(world: &World, script_type: &str, value: &str) -> Outcome {
    let name = format!("migration:{script_type}");
    world
        .raw(&["HSET", &world.keys().config(), &name, value])
        .await
}

/// Pops the newest id as an old worker does.
pub(crate) async fn pop(world: &World) -> Result<Option<String>, Failure> {
    world.raw(&["LPOP", &old(world)]).await
}

/// Takes the id as an old worker does, and writes that the job runs.
pub(crate) async fn start(world: &World, id: &str) -> Outcome {
    world.raw::<()>(&["LREM", &old(world), "0", id]).await?;
    write(world, id, &["status", "started"]).await
}

/// Writes into the record as an old worker does.
pub(crate) async fn write(world: &World, id: &str, fields: &[&str]) -> Outcome {
    let key = world.key(id);
    let words: Vec<_> = ["HSET", &key]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    world.raw(&words).await
}

/// Pushes an id to the old list only, with a record of Hero.
pub(crate) async fn put_old(world: &World, id: &str, fields: &[&str]) -> Outcome {
    let own = ["status", "dispatched", "script", "1", "script_type", "OSIS"];
    write(world, id, &[&own, fields].concat()).await?;
    world.raw(&["LPUSH", &old(world), id]).await
}

/// Returns the time of the next check of a watched job.
pub(crate) async fn looked_at(world: &World, id: &str) -> Result<Option<u64>, Failure> {
    world.raw(&["ZSCORE", &world.keys().watch(), id]).await
}

/// Lets `ms` pass and checks the watched jobs, with all lists known. Returns the ids that were pushed again.
pub(crate) async fn look_after(world: &World, ms: u64) -> Result<Vec<String>, Failure> {
    world.pass(ms);
    let (walk, now) = (world.keys().walk(), world.now().to_string());
    world.raw::<()>(&["HSET", &walk, "whole", &now]).await?;
    Ok(world.broker.check_orphans().await?.pushed)
}

/// Fills a list in front of its entries: `g0`, `g1` …, the last one newest.
pub(crate) async fn fill(world: &World, list: &str, ids: std::ops::Range<usize>) -> Outcome {
    let ids: Vec<_> = ids.map(|n| format!("g{n}")).collect();
    for chunk in ids.chunks(1000) {
        let mut push = redis::cmd("LPUSH");
        push.arg(list).arg(chunk);
        push.query_async::<()>(&mut world.conn().clone()).await?;
    }
    Ok(())
}
