//! configure: changes single settings of a queue, and adapts its jobs to them.

use meshwork_broker::Configured;
use meshwork_model::queue::QueueSetting::{
    self, Concurrency, Draining, Fair, KeyConcurrency, Paused, Payload, Rate, Weight,
};
use meshwork_model::route::Priority;

use crate::cases::harness::options::{LOOK_MS, keyed, members, promote, put_keyed, set, taken};
use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    one_setting_changes_and_the_others_stay,
    all_priorities_are_set_together,
    weights_stand_apart,
    what_cannot_be_changes_nothing,
    another_rate_begins_anew,
    what_runs_takes_its_slot,
    the_jobs_of_each_key_take_theirs,
    who_does_not_run_there_takes_none,
    said_again_it_gives_none_twice,
    more_than_a_step_seats,
    what_is_set_aside_comes_at_once,
    more_keys_than_a_step_looks_at,
    without_a_limit_nobody_is_seated,
];

/// A number that exceeds two steps of a walk, with 500 each.
const MORE: usize = 1_100;

async fn configure(world: &World, settings: &[QueueSetting]) -> Got<Configured> {
    Ok(world.broker.configure(&world.queue(), settings).await?)
}

/// Configures the queue, and returns the number of running jobs that take a slot.
async fn seated(world: &World, settings: &[QueueSetting]) -> Got<usize> {
    Ok(configure(world, settings).await?.seated)
}

/// Returns the settings of the queue of [`World::job`].
async fn kept(world: &World) -> Got<Option<String>> {
    let field = format!("queue:{}", world.queue());
    world.raw(&["HGET", &world.keys().config(), &field]).await
}

async fn score(world: &World, set: &str, member: &str) -> Got<Option<u64>> {
    world.raw(&["ZSCORE", set, member]).await
}

/// A removed setting is deleted.
async fn one_setting_changes_and_the_others_stay(world: &World) -> Outcome {
    set(world, "fair=1 concurrency=2").await?;
    configure(world, &[Concurrency(Some(5)), Payload(Some(9))]).await?;
    same!(
        kept(world).await?.as_deref(),
        Some("fair=1 concurrency=5 payload=9")
    );
    configure(world, &[Fair(false), Draining(true)]).await?;
    same!(
        kept(world).await?.as_deref(),
        Some("concurrency=5 payload=9 draining=1")
    );
    let none = [Concurrency(None), Payload(None), Draining(false)];
    configure(world, &none).await?;
    same!(kept(world).await?, None);
    Ok(())
}

/// Every list of the queue has the same settings.
async fn all_priorities_are_set_together(world: &World) -> Outcome {
    let list = format!("{}:prio:0", world.queue());
    world.broker.configure(&list, &[Paused(true)]).await?;
    same!(kept(world).await?.as_deref(), Some("paused=1"));
    world.put(&["a"]).await?;
    check!(taken(world, 1).await?.is_empty());
    world.broker.configure(&list, &[Paused(false)]).await?;
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

/// Each key has its own setting.
async fn weights_stand_apart(world: &World) -> Outcome {
    let weight = async |key: &str| -> Got<Option<String>> {
        let field = format!("weight:{} {key}", world.queue());
        world.raw(&["HGET", &world.keys().config(), &field]).await
    };
    let heavy = Weight("a b".to_owned(), Some(3));
    let other = Weight("c".to_owned(), Some(7));
    configure(world, &[heavy, Fair(true), other]).await?;
    same!(weight("a b").await?.as_deref(), Some("3"));
    same!(weight("c").await?.as_deref(), Some("7"));
    same!(kept(world).await?.as_deref(), Some("fair=1"));
    configure(world, &[Weight("a b".to_owned(), None)]).await?;
    same!(weight("a b").await?, None);
    same!(weight("c").await?.as_deref(), Some("7"));
    Ok(())
}

/// Valid settings of the same call are not written either.
async fn what_cannot_be_changes_nothing(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    let before = world.all().await?;
    check!(
        configure(world, &[Paused(true), Concurrency(Some(0))])
            .await
            .is_err()
    );
    world.unchanged(&before).await
}

/// Only another rate resets the usage.
async fn another_rate_begins_anew(world: &World) -> Outcome {
    let hour = |count| meshwork_model::queue::Rate::bucket(count, 3_600_000, count).ok();
    configure(world, &[Rate(hour(1))]).await?;
    world.put(&["a", "b", "c"]).await?;
    same!(taken(world, 3).await?, ["a"]);
    configure(world, &[Payload(Some(9))]).await?;
    check!(taken(world, 3).await?.is_empty());
    configure(world, &[Rate(hour(2))]).await?;
    same!(taken(world, 3).await?, ["b", "c"]);
    Ok(())
}

/// So the limit holds for new jobs, and the end of a running job makes room.
async fn what_runs_takes_its_slot(world: &World) -> Outcome {
    let mut high = world.job("high")?;
    high.route.priority = Priority::High;
    world.put_jobs(&[high]).await?;
    world.put(&["a", "b", "c"]).await?;
    let high = format!("{}:prio:0", world.queue());
    let high = world.claim("w2", &[high], 1).await?.jobs;
    let runs = world.take(2).await?;
    same!(seated(world, &[Concurrency(Some(3))]).await?, 3);
    same!(members(world, "SLOTS", None).await?, ["a", "b", "high"]);
    check!(taken(world, 1).await?.is_empty());
    world.finish(&runs[0], "42").await?;
    world.finish(&high[0], "42").await?;
    same!(members(world, "SLOTS", None).await?, ["b"]);
    same!(world.field("a", "mw_slot").await?, None);
    same!(taken(world, 1).await?, ["c"]);
    Ok(())
}

/// Jobs without a key take no slot of a key.
async fn the_jobs_of_each_key_take_theirs(world: &World) -> Outcome {
    put_keyed(world, "k", &["a", "b", "c"]).await?;
    world.put(&["d"]).await?;
    let mut runs = world.take(2).await?;
    let d = world.claim("w2", &[world.queue()], 2).await?.jobs;
    same!(seated(world, &[KeyConcurrency(Some(3))]).await?, 3);
    same!(members(world, "SLOTS", Some("k")).await?, ["a", "b", "c"]);
    check!(members(world, "SLOTS", None).await?.is_empty());
    same!(seated(world, &[Concurrency(Some(4))]).await?, 4);
    runs.extend(d);
    for run in &runs {
        world.finish(run, "42").await?;
    }
    check!(members(world, "SLOTS", Some("k")).await?.is_empty());
    check!(members(world, "SLOTS", None).await?.is_empty());
    Ok(())
}

/// A lease without a matching job, and jobs of other queues, take no slot.
async fn who_does_not_run_there_takes_none(world: &World) -> Outcome {
    let mut other = world.job("other")?;
    other.route.script_type = "sal".parse()?;
    world.put_jobs(&[other]).await?;
    world.claim("w2", &[world.queue_of("sal")], 1).await?;
    world.put(&["waits"]).await?;
    world
        .put_foreign("elsewhere", &[("status", "started")])
        .await?;
    world
        .raw::<()>(&["HSET", &world.key("waits"), "mw_queue", &world.queue()])
        .await?;
    for id in ["waits", "elsewhere", "nobody"] {
        let lease = ["ZADD", &world.keys().lease(), "1800000000000", id];
        world.raw::<()>(&lease).await?;
    }
    same!(seated(world, &[Concurrency(Some(3))]).await?, 0);
    check!(members(world, "SLOTS", None).await?.is_empty());
    same!(world.field("other", "mw_slot").await?, None);
    Ok(())
}

/// A slot keeps the time of the first call.
async fn said_again_it_gives_none_twice(world: &World) -> Outcome {
    put_keyed(world, "k", &["a"]).await?;
    world.take_one().await?;
    let both = [Concurrency(Some(2)), KeyConcurrency(Some(2))];
    same!(seated(world, &both).await?, 1);
    let before = world.all().await?;
    world.pass(7);
    same!(seated(world, &both).await?, 0);
    world.unchanged(&before).await
}

/// All leases expire at the same moment, so each step must continue after the last one.
async fn more_than_a_step_seats(world: &World) -> Outcome {
    let ids: Vec<_> = (0..MORE).map(|n| format!("j{n}")).collect();
    for chunk in ids.chunks(500) {
        let chunk: Vec<_> = chunk.iter().map(String::as_str).collect();
        world.put(&chunk).await?;
        same!(world.take(chunk.len()).await?.len(), chunk.len());
    }
    same!(seated(world, &[Concurrency(Some(1))]).await?, MORE);
    same!(members(world, "SLOTS", None).await?.len(), MORE);
    Ok(())
}

/// The maintenance of due jobs gets a wake-up.
async fn what_is_set_aside_comes_at_once(world: &World) -> Outcome {
    let due = world.keys().due();
    set(world, "key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b", "c"]).await?;
    same!(taken(world, 3).await?, ["a"]);
    let mut others = keyed(world, "k", &["d", "e"])?;
    let other = world.queue_of("sal");
    for job in &mut others {
        job.route.script_type = "sal".parse()?;
    }
    let limit = [KeyConcurrency(Some(1))];
    world.broker.configure(&other, &limit).await?;
    world.put_jobs(&others).await?;
    let queues = std::slice::from_ref(&other);
    same!(world.claim("w2", queues, 2).await?.jobs.len(), 1);
    let held = world.named("BACKLOG_INDEX")?;
    let (ours, theirs) = (format!("{} k", world.queue()), format!("{other} k"));
    same!(score(world, &held, &ours).await?, Some(START + LOOK_MS));
    world.raw::<()>(&["DEL", &due]).await?;
    world.pass(1);
    same!(configure(world, &[Payload(Some(9))]).await?.freed, 1);
    same!(world.list(&due).await?.len(), 1);
    same!(score(world, &held, &ours).await?, Some(START + 1));
    same!(score(world, &held, &theirs).await?, Some(START + LOOK_MS));
    configure(world, &[KeyConcurrency(Some(3))]).await?;
    same!(promote(world).await?.1, Some(LOOK_MS - 1));
    same!(taken(world, 3).await?, ["b", "c"]);
    // No job is set aside any more.
    world.raw::<()>(&["DEL", &due]).await?;
    same!(configure(world, &[Payload(None)]).await?.freed, 0);
    check!(world.list(&due).await?.is_empty());
    Ok(())
}

/// Due checks move before later ones, and an overdue one stays in place.
async fn more_keys_than_a_step_looks_at(world: &World) -> Outcome {
    let held = world.named("BACKLOG_INDEX")?;
    let mut add = redis::cmd("ZADD");
    add.arg(&held);
    for n in 0..MORE {
        add.arg(START + LOOK_MS);
        add.arg(format!("{} k{n}", world.queue()));
    }
    let overdue = format!("{} overdue", world.queue());
    add.arg(START - 5).arg(&overdue);
    add.query_async::<()>(&mut world.conn().clone()).await?;
    check!(configure(world, &[Fair(true)]).await?.freed >= MORE);
    same!(score(world, &held, &overdue).await?, Some(START - 5));
    let last = START.to_string();
    let looked: usize = world.raw(&["ZCOUNT", &held, "-inf", &last]).await?;
    same!(looked, MORE + 1);
    Ok(())
}

/// Other settings, or none, do not matter.
async fn without_a_limit_nobody_is_seated(world: &World) -> Outcome {
    world.started("a").await?;
    for setting in [Paused(true), Paused(false)] {
        same!(seated(world, &[setting]).await?, 0);
    }
    same!(world.field("a", "mw_slot").await?, None);
    Ok(())
}
