//! stats: the figures of all queues in one call, which changes nothing.

use std::time::Duration;

use meshwork_broker::{KnownQueues, QueueStats, Registration, Stats};
use meshwork_model::outcome::{Failure as Wrong, FailureKind};
use meshwork_model::route::Priority;

use crate::cases::harness::options::{delayed, put_keyed, set, taken};
use crate::cases::harness::world::{Got, START, WORKER};
use crate::cases::schedules::put_schedule::{SLOT, every, put};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    each_list_has_its_depth_and_its_figures,
    the_oldest_job_is_told_by_its_record,
    what_is_told_of_the_whole,
    schedules_and_the_next_slot,
    who_is_there_and_who_listens,
    a_queue_that_is_gone_is_told_no_more,
    the_search_for_queues_goes_on,
    odd_keys_are_passed_over,
    jobs_of_foreign_clients_count_too,
    the_metrics_of_the_server,
    looking_changes_nothing,
];

/// Returns the figures after a complete search.
async fn look(world: &World) -> Got<Stats> {
    let mut known = KnownQueues::default();
    Ok(world.broker.stats(&mut known, true).await?)
}

fn of<'a>(stats: &'a Stats, queue: &str) -> Got<&'a QueueStats> {
    let mut queues = stats.queues.iter();
    queues
        .find(|figures| figures.queue == queue)
        .ok_or_else(|| Failure::new(format!("no statistics of {queue}")))
}

fn names(stats: &Stats) -> Vec<&str> {
    let queues = stats.queues.iter();
    queues.map(|figures| figures.queue.as_str()).collect()
}

/// Each priority has its own, and an empty queue has its counters.
async fn each_list_has_its_depth_and_its_figures(world: &World) -> Outcome {
    let high = format!("{}:prio:0", world.queue());
    let mut job = world.job("high")?;
    job.route.priority = Priority::High;
    world
        .put_jobs(&[job, world.job("a")?, world.job("b")?])
        .await?;
    let run = world.claim(WORKER, std::slice::from_ref(&high), 1).await?;
    world.pass(20);
    world.finish(&run.jobs[0], "42").await?;
    let run = world.take_one().await?;
    world.pass(5);
    world.fail(&run, FailureKind::Script).await?;
    let stats = look(world).await?;
    same!(names(&stats), [world.queue(), high.clone()]);
    let normal = of(&stats, &world.queue())?;
    same!((normal.waiting, normal.created, normal.started), (1, 2, 1));
    same!((normal.failed, normal.dead, normal.finished), (1, 1, 0));
    same!(normal.run_ms, 5);
    same!(normal.claimed_at, Some(START + 20));
    same!(normal.errors.get("script"), Some(&1));
    same!(normal.ended_runs(), 1);
    let high = of(&stats, &high)?;
    same!((high.waiting, high.created), (0, 1));
    same!((high.started, high.finished), (1, 1));
    same!((high.run_ms, high.oldest_ms), (20, None));
    same!(high.claimed_at, Some(START));
    Ok(())
}

/// The time is that since which the job has been ready; it may have waited for something else before.
async fn the_oldest_job_is_told_by_its_record(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "late", 1_000)?]).await?;
    world.pass(1_000);
    world.broker.promote().await?;
    world.pass(30);
    world.put(&["young"]).await?;
    world.pass(7);
    let stats = look(world).await?;
    same!(of(&stats, &world.queue())?.oldest_ms, Some(37));
    taken(world, 1).await?;
    let stats = look(world).await?;
    same!(of(&stats, &world.queue())?.oldest_ms, Some(7));
    // The time of an id without a record is unknown.
    world
        .raw::<()>(&["RPUSH", &world.queue(), "nobody"])
        .await?;
    same!(of(&look(world).await?, &world.queue())?.oldest_ms, None);
    Ok(())
}

/// The figures have the number of schedules and the time of the next slot, decided or not. A paused schedule has
/// none.
async fn schedules_and_the_next_slot(world: &World) -> Outcome {
    let stats = look(world).await?;
    same!((stats.schedules, stats.next_slot_ms), (0, None));
    put(world, &every(world, "@every 10s")?).await?;
    world.at(SLOT + 7);
    let stats = look(world).await?;
    same!((stats.schedules, stats.next_slot_ms), (1, Some(SLOT)));
    world.broker.fire_schedules().await?;
    let stats = look(world).await?;
    same!(stats.next_slot_ms, Some(SLOT + 10_000));
    let figures = of(&stats, &world.queue())?;
    same!(figures.slots.get("ran"), Some(&1));
    same!((figures.slots.len(), figures.slots_late_ms), (1, 7));
    check!(figures.errors.is_empty());
    world.broker.pause_schedule(&"s".parse()?).await?;
    let stats = look(world).await?;
    same!((stats.schedules, stats.next_slot_ms), (1, None));
    Ok(())
}

/// The figures have the jobs that run, wait, are overdue, have ended, and are set aside.
async fn what_is_told_of_the_whole(world: &World) -> Outcome {
    set(world, "key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b", "c"]).await?;
    same!(taken(world, 3).await?, ["a"]);
    let ended = world.started("ended").await?;
    world.finish(&ended, "42").await?;
    let dead = world.started("dead").await?;
    let failure = Wrong::new(FailureKind::Permanent, "boom");
    world
        .broker
        .fail(&dead, &failure, b"", b"", Duration::ZERO)
        .await?;
    world
        .put_jobs(&[delayed(world, "x", 50)?, delayed(world, "y", 90)?])
        .await?;
    let stats = look(world).await?;
    same!(stats.now_ms, START);
    same!(
        (stats.running, stats.delayed, stats.overdue_ms),
        (1, 2, None)
    );
    same!((stats.dead, stats.ended), (1, 1));
    same!(of(&stats, &world.queue())?.set_aside, 2);
    check!(!stats.partial);
    world.pass(60);
    same!(look(world).await?.overdue_ms, Some(10));
    Ok(())
}

/// Only live workers count.
async fn who_is_there_and_who_listens(world: &World) -> Outcome {
    world.renew("w1-a", &[]).await?;
    world.renew("w2-b", &[]).await?;
    let key = format!("{}osis:default:w1", world.keys().presence_prefix());
    let presence = Registration {
        key: &key,
        value: r#"{"pid":1,"mark":"a"}"#,
        mark: "\"a\"",
        over: None,
    };
    world.broker.register(presence).await?;
    let stats = look(world).await?;
    same!(of(&stats, &world.queue())?.listeners, 2);
    check!(!of(&stats, &world.queue())?.is_used());
    same!(stats.workers.len(), 1);
    same!(stats.workers[0].0, "osis:default:w1");
    world.pass(crate::cases::harness::world::ALIVE_MS);
    let stats = look(world).await?;
    check!(stats.workers.is_empty() && stats.queues.is_empty());
    Ok(())
}

/// Neither ids nor counters nor registrations are left.
async fn a_queue_that_is_gone_is_told_no_more(world: &World) -> Outcome {
    world.put(&["a"]).await?;
    let mut known = KnownQueues::default();
    let stats = world.broker.stats(&mut known, true).await?;
    same!(names(&stats), [world.queue()]);
    let figures = world.keys().queue_stats_key(&world.queue());
    world.raw::<()>(&["DEL", &figures, &world.queue()]).await?;
    let stats = world.broker.stats(&mut known, false).await?;
    check!(stats.queues.is_empty());
    world.put(&["b"]).await?;
    let stats = world.broker.stats(&mut known, false).await?;
    same!(names(&stats), [world.queue()]);
    Ok(())
}

/// There are more keys than one call reads.
async fn the_search_for_queues_goes_on(world: &World) -> Outcome {
    let mut pipe = redis::pipe();
    for n in 0..25_000 {
        let filler = format!("{}filler{n}", world.keys().job_prefix());
        pipe.cmd("SET").arg(filler).arg("x").ignore();
    }
    pipe.query_async::<()>(&mut world.conn().clone()).await?;
    world.put(&["a"]).await?;
    let mut known = KnownQueues::default();
    check!(world.broker.stats(&mut known, false).await?.partial);
    let stats = world.broker.stats(&mut known, false).await?;
    check!(!stats.partial);
    same!(names(&stats), [world.queue()]);
    same!(names(&look(world).await?), [world.queue()]);
    Ok(())
}

/// Each is skipped separately.
async fn odd_keys_are_passed_over(world: &World) -> Outcome {
    let (text, odd) = (world.queue_of("text"), world.queue_of("odd"));
    world.raw::<()>(&["SET", &text, "x"]).await?;
    let figures = world.keys().queue_stats_key(&text);
    world.raw::<()>(&["LPUSH", &figures, "x"]).await?;
    let figures = world.keys().queue_stats_key(&odd);
    let fields = [
        "HSET", &figures, "created", "many", "failed", "-1", "other", "5", "started", " 7 ",
    ];
    world.raw::<()>(&fields).await?;
    world.put(&["a"]).await?;
    let stats = look(world).await?;
    same!(names(&stats), [odd.clone(), world.queue()]);
    let odd = of(&stats, &odd)?;
    same!((odd.created, odd.failed, odd.started), (0, 0, 7));
    check!(odd.errors.is_empty());
    Ok(())
}

/// Both kinds are in the sum.
async fn jobs_of_foreign_clients_count_too(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    world.put_foreign("c", &[]).await?;
    same!(world.take(3).await?.len(), 3);
    let stats = look(world).await?;
    let figures = of(&stats, &world.queue())?;
    same!((figures.created, figures.created_foreign), (3, 1));
    check!(figures.is_used());
    Ok(())
}

/// Scripts of all clients count.
async fn the_metrics_of_the_server(world: &World) -> Outcome {
    let before = look(world).await?.server;
    same!(before.evicted_keys, Some(0));
    same!(before.memory_limit, None);
    world.started("a").await?;
    let after = look(world).await?.server;
    check!(after.scripts > before.scripts);
    check!(after.script_micros >= before.script_micros);
    Ok(())
}

/// This holds even for keys that have expired.
async fn looking_changes_nothing(world: &World) -> Outcome {
    world.started("a").await?;
    world.put_jobs(&[delayed(world, "x", 50)?]).await?;
    world.renew(WORKER, &[]).await?;
    world.pass(3_600_000);
    let before = world.all().await?;
    look(world).await?;
    world.unchanged(&before).await
}
