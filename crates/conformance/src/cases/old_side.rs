//! The other side of a migration: an old list, and workers that do what Hero's protocol says, no more. They pop an id,
//! write `started`, run the job, and write how it went; nothing of ours is known to them.

use super::{Failure, Outcome, World};

/// After how long a job that is gone from its old list counts as lost, in milliseconds.
pub(super) const AGE: u64 = 1_000;

/// The old list of type `osis`.
pub(super) fn old(world: &World) -> String {
    world.key("actor_queue:osis")
}

/// Type `osis` migrates.
pub(super) async fn migrate(world: &World, phase: &str) -> Outcome {
    set(world, "osis", &format!("{phase} {} {AGE}", old(world))).await
}

/// What is set about the migration of a type.
pub(super) async fn set(world: &World, script_type: &str, value: &str) -> Outcome {
    let name = format!("migration:{script_type}");
    world
        .raw(&["HSET", &world.keys().config(), &name, value])
        .await
}

/// An old worker takes the newest id.
pub(super) async fn pop(world: &World) -> Result<Option<String>, Failure> {
    world.raw(&["LPOP", &old(world)]).await
}

/// An old worker takes the id and says that it runs the job.
pub(super) async fn start(world: &World, id: &str) -> Outcome {
    world.raw::<()>(&["LREM", &old(world), "0", id]).await?;
    write(world, id, &["status", "started"]).await
}

/// An old worker writes into the record.
pub(super) async fn write(world: &World, id: &str, fields: &[&str]) -> Outcome {
    let key = world.key(id);
    let words: Vec<_> = ["HSET", &key]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    world.raw(&words).await
}

/// An id alone on the old list, with a record of Hero.
pub(super) async fn put_old(world: &World, id: &str, fields: &[&str]) -> Outcome {
    let own = ["status", "dispatched", "script", "1", "script_type", "OSIS"];
    write(world, id, &[&own, fields].concat()).await?;
    world.raw(&["LPUSH", &old(world), id]).await
}

/// When a job under watch is looked at next.
pub(super) async fn looked_at(world: &World, id: &str) -> Result<Option<u64>, Failure> {
    world.raw(&["ZSCORE", &world.keys().watch(), id]).await
}

/// Lets `ms` pass and looks, with all lists known; the ids that were pushed again.
pub(super) async fn look_after(world: &World, ms: u64) -> Result<Vec<String>, Failure> {
    world.pass(ms);
    let (walk, now) = (world.keys().walk(), world.now().to_string());
    world.raw::<()>(&["HSET", &walk, "whole", &now]).await?;
    Ok(world.broker.watch().await?.pushed)
}

/// Fills a list in front of what it holds: `g0`, `g1` …, the last one newest.
pub(super) async fn fill(world: &World, list: &str, ids: std::ops::Range<usize>) -> Outcome {
    let ids: Vec<_> = ids.map(|n| format!("g{n}")).collect();
    for chunk in ids.chunks(1000) {
        let mut push = redis::cmd("LPUSH");
        push.arg(list).arg(chunk);
        push.query_async::<()>(&mut world.conn().clone()).await?;
    }
    Ok(())
}
