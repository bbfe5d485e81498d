//! Records that cannot be read for a time, since their keys have another type: nothing is dropped, and what belongs to
//! them goes on when they are back. An entry whose key is gone is removed.

use std::time::Duration;

use meshwork_broker::{Controlled, Retention};
use meshwork_model::name::ScheduleName;
use meshwork_model::schedule::policy::Overlap;

use crate::cases::dependencies::prerequisites::{put_after, run, waits};
use crate::cases::harness::options::delayed;
use crate::cases::harness::world::{Got, START, WORKER};
use crate::cases::orphans::scan_orphans::sweep;
use crate::cases::schedules::fire_schedules::{after_one, tick};
use crate::cases::schedules::put_schedule::{SLOT, every, named, put, read};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_schedule_stays,
    a_schedule_without_a_version_stays,
    what_no_index_lists_is_found,
    a_paused_schedule_comes_back_paused,
    a_schedule_that_is_resumed_is_listed_again,
    a_slot_waits_for_the_job_before_it,
    a_lease_stays,
    a_delay_stays,
    a_start_timeout_stays,
    an_ended_job_is_forgotten_later,
    a_prerequisite_has_not_failed,
    a_job_that_waits_is_watched_on,
    a_watched_job_waits_on,
    a_request_to_cancel_stays,
    a_batch_stays,
    a_member_of_a_batch_has_not_failed,
];

/// The pause after which such a record is read again, in milliseconds.
const AGAIN: u64 = 60_000;

/// Puts a value of another type in place of a key.
async fn hide(world: &World, key: &str) -> Outcome {
    let away = format!("{key}.away");
    world.raw::<()>(&["RENAME", key, &away]).await?;
    world.raw(&["SET", key, "x"]).await
}

/// Puts the key back.
async fn show(world: &World, key: &str) -> Outcome {
    let away = format!("{key}.away");
    world.raw(&["RENAME", &away, key]).await
}

fn key_of(world: &World, name: &ScheduleName) -> String {
    world.keys().schedule(name)
}

async fn score(world: &World, set: &str, member: &str) -> Got<Option<u64>> {
    world.raw(&["ZSCORE", set, member]).await
}

/// Returns the names of all schedules, in order.
async fn listed(world: &World) -> Got<Vec<String>> {
    let (mut names, mut from) = (Vec::new(), 0);
    loop {
        let page = world.broker.schedules(from).await?;
        names.extend(page.schedules.iter().map(|it| it.name.to_string()));
        from = page.next;
        if from == 0 {
            break;
        }
    }
    names.sort();
    Ok(names)
}

/// The others fire, and it fires when it is back.
async fn a_schedule_stays(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    put(world, &named(world, "t", "@every 10s")?).await?;
    let name = "s".parse()?;
    hide(world, &key_of(world, &name)).await?;
    world.at(SLOT);
    let ticked = world.broker.fire_schedules().await?;
    let trouble = (name.clone(), "its key has another type".to_owned());
    same!((ticked.stored, ticked.troubles), (1, vec![trouble]));
    same!(listed(world).await?, ["s", "t"]);
    check!(read(world).await?.schedule.is_err());
    check!(world.broker.resume_schedule(&name).await.is_err());
    let again = world.broker.fire_schedules().await?;
    same!((again.due, again.troubles.len()), (0, 0));
    show(world, &key_of(world, &name)).await?;
    world.pass(5_000);
    same!(tick(world).await?, (1, 1, 0));
    Ok(())
}

/// Another program wrote the record.
async fn a_schedule_without_a_version_stays(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let key = key_of(world, &"s".parse()?);
    let version: String = world.raw(&["HGET", &key, "version"]).await?;
    world.raw::<()>(&["HDEL", &key, "version"]).await?;
    world.at(SLOT);
    let ticked = world.broker.fire_schedules().await?;
    same!(ticked.troubles.len(), 1);
    world
        .raw::<()>(&["HSET", &key, "version", &version])
        .await?;
    world.pass(5_000);
    same!(tick(world).await?, (1, 1, 0));
    Ok(())
}

/// It is listed at once, and fires after a scan of all keys.
async fn what_no_index_lists_is_found(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let set = world.keys().schedules();
    world.raw::<()>(&["ZREM", &set, "s"]).await?;
    same!(listed(world).await?, ["s"]);
    let (exported, next) = world.broker.export_schedules(0).await?;
    check!(exported.is_empty() && next != 0);
    let (exported, _) = world.broker.export_schedules(next).await?;
    same!(exported.len(), 1);
    world.at(SLOT);
    same!(tick(world).await?, (0, 0, 0));
    same!(sweep(world).await?.restored, 1);
    same!(tick(world).await?, (1, 1, 0));
    world.pass(AGAIN);
    same!(sweep(world).await?.restored, 0);
    Ok(())
}

async fn a_paused_schedule_comes_back_paused(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let name = "s".parse()?;
    check!(world.broker.pause_schedule(&name).await?);
    let set = world.keys().schedules();
    world.raw::<()>(&["ZREM", &set, "s"]).await?;
    same!(sweep(world).await?.restored, 1);
    world.at(SLOT);
    same!(tick(world).await?, (0, 0, 0));
    let there = read(world).await?;
    same!((there.paused, there.next), (true, None));
    Ok(())
}

/// The slots since its last one are decided.
async fn a_schedule_that_is_resumed_is_listed_again(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let set = world.keys().schedules();
    world.raw::<()>(&["ZREM", &set, "s"]).await?;
    world.at(SLOT);
    check!(world.broker.resume_schedule(&"s".parse()?).await?);
    same!(tick(world).await?, (1, 1, 0));
    let before = world.all().await?;
    check!(world.broker.resume_schedule(&"s".parse()?).await?);
    world.unchanged(&before).await
}

/// An unreadable job may not have ended.
async fn a_slot_waits_for_the_job_before_it(world: &World) -> Outcome {
    after_one(world, Overlap::Skip).await?;
    let last = world.waiting().await?.concat();
    hide(world, &world.key(&last)).await?;
    world.pass(10_000);
    let ticked = world.broker.fire_schedules().await?;
    same!(
        (ticked.stored, ticked.skipped, ticked.troubles.len()),
        (0, 0, 1)
    );
    show(world, &world.key(&last)).await?;
    world.pass(5_000);
    same!(tick(world).await?, (1, 0, 1));
    Ok(())
}

async fn a_lease_stays(world: &World) -> Outcome {
    world.started("j1").await?;
    hide(world, &world.key("j1")).await?;
    let lost = world.lose_all().await?;
    check!(lost.requeued.is_empty() && lost.ended.is_empty());
    same!(world.lease("j1").await?, Some(world.now() + AGAIN));
    show(world, &world.key("j1")).await?;
    world.pass(AGAIN);
    same!(world.broker.reclaim().await?.requeued, ["j1"]);
    Ok(())
}

async fn a_delay_stays(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "j1", 1_000)?]).await?;
    hide(world, &world.key("j1")).await?;
    world.pass(1_000);
    world.broker.promote().await?;
    show(world, &world.key("j1")).await?;
    world.pass(AGAIN);
    world.broker.promote().await?;
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

async fn a_start_timeout_stays(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.start_timeout_ms = Some(1_000);
    world.put_jobs(&[job]).await?;
    hide(world, &world.key("j1")).await?;
    world.pass(1_000_000);
    world.broker.check_orphans().await?;
    show(world, &world.key("j1")).await?;
    world.pass(AGAIN);
    world.broker.check_orphans().await?;
    same!(world.status("j1").await?, "error");
    Ok(())
}

async fn an_ended_job_is_forgotten_later(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    hide(world, &world.key("j1")).await?;
    let retention = Retention {
        age: Duration::from_secs(1),
        count: 1000,
    };
    world.pass(1_000);
    same!(world.broker.prune(retention).await?, (0, false));
    show(world, &world.key("j1")).await?;
    world.pass(AGAIN + 1_000);
    same!(world.broker.prune(retention).await?, (1, false));
    Ok(())
}

/// Its dependents are notified after it is back.
async fn a_prerequisite_has_not_failed(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    put_after(world, "child", &["first"]).await?;
    let note = format!("{}first", world.named("DEPENDENTS")?);
    hide(world, &note).await?;
    run(world, "first", true).await?;
    show(world, &note).await?;
    hide(world, &world.key("first")).await?;
    let settle = world.named("UNRESOLVED")?;
    world.raw::<()>(&["LPUSH", &settle, "first"]).await?;
    check!(!world.broker.resolve_dependents().await?);
    check!(waits(world, "child").await?);
    show(world, &world.key("first")).await?;
    world.pass(AGAIN);
    world.broker.check_orphans().await?;
    world.broker.resolve_dependents().await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

async fn a_job_that_waits_is_watched_on(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    put_after(world, "child", &["first"]).await?;
    hide(world, &world.key("child")).await?;
    run(world, "first", true).await?;
    world.pass(AGAIN);
    world.broker.check_orphans().await?;
    show(world, &world.key("child")).await?;
    for _ in 0..2 {
        world.pass(AGAIN);
        world.broker.check_orphans().await?;
        world.broker.resolve_dependents().await?;
    }
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

/// Its prerequisite cannot be read when the job is looked at.
async fn a_watched_job_waits_on(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    put_after(world, "child", &["first"]).await?;
    hide(world, &world.key("first")).await?;
    world.pass(AGAIN);
    world.broker.check_orphans().await?;
    let settle = world.named("UNRESOLVED")?;
    same!(world.raw::<u32>(&["EXISTS", &settle]).await?, 0);
    check!(waits(world, "child").await?);
    show(world, &world.key("first")).await?;
    run(world, "first", true).await?;
    world.broker.resolve_dependents().await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

async fn a_request_to_cancel_stays(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let queue = world.keys().control_queue_type(&"osis".parse()?);
    world.raw::<()>(&["LPUSH", &queue, "j1"]).await?;
    hide(world, &world.key("j1")).await?;
    let queues = [queue];
    let request = Controlled {
        worker: WORKER,
        queues: &queues,
        types: &[],
        held: &[],
        turn: Duration::from_millis(900),
    };
    world.broker.control(request).await?;
    show(world, &world.key("j1")).await?;
    world.broker.control(request).await?;
    same!(world.status("j1").await?, "error");
    Ok(())
}

async fn a_batch_stays(world: &World) -> Outcome {
    let (open, key) = (world.keys().batches_open(), {
        let id = "b".parse()?;
        world.keys().batch(&id)
    });
    world
        .raw::<()>(&["HSET", &key, "total", "0", "succeeded", "0", "failed", "0"])
        .await?;
    let at = START.to_string();
    world.raw::<()>(&["ZADD", &open, &at, "b"]).await?;
    hide(world, &key).await?;
    world
        .broker
        .sweep_batches(Retention {
            age: Duration::from_secs(60),
            count: 1000,
        })
        .await?;
    check!(score(world, &open, "b").await?.is_some());
    Ok(())
}

/// A scan of the members finds it open.
async fn a_member_of_a_batch_has_not_failed(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let id = "b".parse()?;
    let (key, members) = (world.keys().batch(&id), world.keys().members(&id));
    let fields = [
        "HSET",
        &key,
        "total",
        "1",
        "succeeded",
        "0",
        "failed",
        "0",
        "open_until",
        "9999999999999",
        "open_for",
        "1000",
    ];
    world.raw::<()>(&fields).await?;
    world.raw::<()>(&["SADD", &members, "j1"]).await?;
    let at = START.to_string();
    let open = world.keys().batches_open();
    world.raw::<()>(&["ZADD", &open, &at, "b"]).await?;
    hide(world, &world.key("j1")).await?;
    world
        .broker
        .sweep_batches(Retention {
            age: Duration::from_secs(60),
            count: 1000,
        })
        .await?;
    let failed: String = world.raw(&["HGET", &key, "failed"]).await?;
    same!(failed, "0");
    same!(world.raw::<u8>(&["SCARD", &members]).await?, 1);
    Ok(())
}
