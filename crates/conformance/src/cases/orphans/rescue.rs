//! Rescue: open jobs that are on no list, or that a worker without leases started and abandoned. The workers here
//! follow Hero's protocol only.

use std::time::Duration;

use meshwork_broker::{Broker, Rescue, Retried};
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::route::{Fallback, Priority};

use crate::cases::harness::legacy_worker::{looked_at, start, write};
use crate::cases::harness::world::{Got, START, ids};
use crate::cases::orphans::scan_orphans::sweep;
use crate::cases::orphans::track_orphans::adopt;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    a_job_of_ours_that_was_popped_and_lost_is_pushed_again,
    in_the_queue_where_it_belongs,
    after_the_age_that_is_set,
    one_that_was_started_and_lost_has_its_timeout_first,
    one_that_keeps_losing_its_workers_is_poison,
    what_stands_in_its_queue_is_left,
    what_is_on_its_way_to_a_worker_is_left,
    what_waits_for_something_is_left,
    a_walk_begins_once_a_minute,
    a_walk_goes_on_where_the_last_call_ended,
    what_should_have_been_taken_before_others_is_looked_for,
    one_that_is_stopped_is_no_longer_named,
    people_may_repeat_a_stale_job,
    a_waiting_or_running_job_is_not_repeated,
    suspects_are_bounded_and_ours_come_first,
    what_is_known_only_helps,
];

/// Default age, in milliseconds.
pub(crate) const AGE: u64 = 30_000;
/// Interval between two walks, in milliseconds.
pub(crate) const WALK: u64 = 60_000;

/// Pops the newest id of a canonical queue, as a foreign worker does.
async fn pop(world: &World) -> Got<Option<String>> {
    world.raw(&["LPOP", &world.queue()]).await
}

/// Returns the same verbs with the rescue of foreign jobs.
pub(crate) fn rescuing(world: &World, seconds: u64) -> Broker {
    let (after, foreign) = (Duration::from_secs(seconds), true);
    world.broker.clone().with_rescue(Rescue { after, foreign })
}

/// Lets `ms` pass, runs a walk if one is due, and checks. Returns the ids that were pushed again.
pub(crate) async fn walk_and_look(world: &World, ms: u64) -> Got<Vec<String>> {
    world.pass(ms);
    sweep(world).await?;
    Ok(world.broker.check_orphans().await?.pushed)
}

/// Returns the ids of stale jobs.
pub(crate) async fn stale(world: &World) -> Got<Vec<String>> {
    let stale = world.broker.list_stale(0, 100).await?;
    let total: usize = world.raw(&["ZCARD", &world.keys().stale()]).await?;
    check!(stale.len() <= total);
    Ok(stale.iter().map(|job| job.id.to_string()).collect())
}

pub(crate) async fn foreign(world: &World, id: &str, more: &[(&str, &str)]) -> Outcome {
    let all = [
        ("status", "dispatched"),
        ("script", "1"),
        ("script_type", "OSIS"),
        ("timeout", "2"),
    ];
    world.put_foreign(id, &[&all[..], more].concat()).await
}

/// The job is pushed once, and runs once.
async fn a_job_of_ours_that_was_popped_and_lost_is_pushed_again(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    same!(pop(world).await?.as_deref(), Some("j1"));
    same!(walk_and_look(world, 0).await?.len(), 0);
    same!(looked_at(world, "j1").await?, Some(START + AGE));
    same!(stale(world).await?.len(), 0);
    same!(walk_and_look(world, AGE).await?.len(), 0);
    same!(stale(world).await?, ["j1"]);
    same!(walk_and_look(world, AGE - 1).await?.len(), 0);
    same!(walk_and_look(world, 1).await?, ["j1"]);
    same!(
        (world.waiting().await?, stale(world).await?.len()),
        (vec!["j1".to_owned()], 0)
    );
    let job = world.take_one().await?;
    world.finish(&job, "42").await?;
    same!(walk_and_look(world, 9 * WALK).await?.len(), 0);
    same!(world.waiting().await?.len(), 0);
    Ok(())
}

/// The queue is that of its group, its instance, or its priority.
async fn in_the_queue_where_it_belongs(world: &World) -> Outcome {
    let mut jobs = [world.job("j1")?, world.job("j2")?, world.job("j3")?];
    jobs[0].route.group = Some("io".parse()?);
    jobs[1].route.instance = Some("runner_1".parse()?);
    jobs[2].route.priority = Priority::High;
    world.put_jobs(&jobs).await?;
    for job in &jobs {
        let queue = job.route.queue(world.keys());
        world.raw::<()>(&["DEL", &queue]).await?;
    }
    walk_and_look(world, 0).await?;
    walk_and_look(world, AGE).await?;
    same!(walk_and_look(world, AGE).await?.len(), 3);
    for job in &jobs {
        let queue = job.route.queue(world.keys());
        same!(world.list(&queue).await?, [job.id.as_str()]);
    }
    Ok(())
}

/// The age counts twice: from the walk to the first check, and from that check.
async fn after_the_age_that_is_set(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    pop(world).await?;
    let broker = rescuing(world, 5);
    same!(broker.scan_orphans().await?.adopted, 1);
    for (ms, pushed) in [(4_999, 0), (1, 0), (4_999, 0), (1, 1)] {
        world.pass(ms);
        same!(broker.check_orphans().await?.pushed.len(), pushed);
    }
    Ok(())
}

/// The age counts after the timeout.
async fn one_that_was_started_and_lost_has_its_timeout_first(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.timeout = 100;
    world.put_jobs(&[job]).await?;
    pop(world).await?;
    write(world, "j1", &["status", "started"]).await?;
    walk_and_look(world, 0).await?;
    for _ in 0..4 {
        same!(walk_and_look(world, AGE).await?.len(), 0);
        same!(stale(world).await?.len(), 0);
    }
    same!(walk_and_look(world, AGE).await?.len(), 0);
    same!(stale(world).await?, ["j1"]);
    same!(walk_and_look(world, AGE).await?, ["j1"]);
    let job = world.read("j1").await?;
    same!((job.status.as_str(), job.lost), ("dispatched", 1));
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// The job ends, and is no longer listed.
async fn one_that_keeps_losing_its_workers_is_poison(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.timeout = 1;
    world.put_jobs(&[job]).await?;
    for loss in 1..=MAX_LOST {
        pop(world).await?;
        write(world, "j1", &["status", "started"]).await?;
        walk_and_look(world, WALK).await?;
        walk_and_look(world, AGE).await?;
        let pushed = walk_and_look(world, 2 * AGE).await?.len();
        same!(pushed, usize::from(loss < MAX_LOST));
    }
    same!(world.read("j1").await?.dead.as_deref(), Some("poison"));
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// This includes a job that is older than the next one, as after a retry.
async fn what_stands_in_its_queue_is_left(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    same!(sweep(world).await?.adopted, 0);
    world.pass(WALK);
    world.put(&["j3"]).await?;
    // The oldest two move behind the newest.
    let queue = world.queue();
    for _ in 0..2 {
        world
            .raw::<()>(&["LMOVE", &queue, &queue, "RIGHT", "LEFT"])
            .await?;
    }
    same!(sweep(world).await?.adopted, 2);
    for _ in 0..4 {
        same!(world.broker.check_orphans().await?.pushed.len(), 0);
        world.pass(AGE);
    }
    same!(looked_at(world, "j1").await?, None);
    same!(world.waiting().await?, ["j3", "j1", "j2"]);
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// The id is in a prefetch list.
async fn what_is_on_its_way_to_a_worker_is_left(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let member = format!("w1 {}", world.queue());
    world
        .raw::<()>(&[
            "ZADD",
            &world.keys().prefetch_registry(),
            "9999999999999",
            &member,
        ])
        .await?;
    let (queue, feed) = (world.queue(), world.feed("w1"));
    world
        .raw::<()>(&["LMOVE", &queue, &feed, "RIGHT", "LEFT"])
        .await?;
    for _ in 0..4 {
        same!(walk_and_look(world, AGE).await?.len(), 0);
    }
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// The job waits for prerequisites, its due time, its retry, the turn of its key, or a worker; or it runs.
async fn what_waits_for_something_is_left(world: &World) -> Outcome {
    world.put(&["runs"]).await?;
    world.take_one().await?;
    let mut waits = world.job("waits")?;
    waits.depends_on = vec!["runs".parse()?];
    let mut late = world.job("late")?;
    late.when = Some(meshwork_model::job::When::In(7_200_000));
    world.put_jobs(&[waits, late]).await?;
    let queue = world.queue();
    let config = world.keys().config();
    world
        .raw::<()>(&["HSET", &config, &format!("queue:{queue}"), "fair=1"])
        .await?;
    for id in ["turn1", "turn2"] {
        let mut job = world.job(id)?;
        job.key = Some("k".to_owned());
        world.put_jobs(&[job]).await?;
    }
    same!(world.waiting().await?, ["turn1"]);
    let mut away = world.job("away")?;
    away.route.instance = Some("runner_1".parse()?);
    away.fallback = Some(Fallback::Type);
    world.put_jobs(&[away]).await?;
    for _ in 0..3 {
        same!(walk_and_look(world, AGE).await?.len(), 0);
    }
    same!(stale(world).await?.len(), 0);
    // This includes a job that began to wait after it was suspected.
    same!(adopt(world, &["turn2"]).await?, 0);
    let watch = world.keys().watch();
    world.raw::<()>(&["ZADD", &watch, "1", "turn2"]).await?;
    for _ in 0..3 {
        same!(walk_and_look(world, AGE).await?.len(), 0);
    }
    let watched: Vec<String> = world
        .raw(&["ZRANGE", &world.keys().watch(), "0", "-1"])
        .await?;
    same!(watched, ["waits"]);
    Ok(())
}

/// Any worker may start it.
async fn a_walk_begins_once_a_minute(world: &World) -> Outcome {
    same!(sweep(world).await?.adopted, 0);
    world.put(&["j1"]).await?;
    pop(world).await?;
    for ms in [0, WALK - 1] {
        world.pass(ms);
        let before = world.all().await?;
        same!(sweep(world).await?.adopted, 0);
        world.unchanged(&before).await?;
    }
    world.pass(1);
    same!(sweep(world).await?.adopted, 1);
    Ok(())
}

/// The next call may come from another worker. A page has 500 keys, a call eight pages.
async fn a_walk_goes_on_where_the_last_call_ended(world: &World) -> Outcome {
    let all: Vec<_> = (0..6_000).map(|n| format!("j{n}")).collect();
    for chunk in all.chunks(1_000) {
        let ids: Vec<_> = chunk.iter().map(String::as_str).collect();
        world.put(&ids).await?;
    }
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    let (mut adopted, mut calls) = (0, 0);
    loop {
        let swept = world.broker.clone().scan_orphans().await?;
        (adopted, calls) = (adopted + swept.adopted, calls + 1);
        if swept.next == 0 {
            break;
        }
        check!(swept.adopted < all.len());
    }
    same!(adopted, all.len());
    check!(calls > 1);
    Ok(())
}

/// Other jobs are not searched, because the walk would be as long as the queue.
async fn what_should_have_been_taken_before_others_is_looked_for(world: &World) -> Outcome {
    world.put(&["lost"]).await?;
    pop(world).await?;
    world.pass(1);
    world.put(&["j1"]).await?;
    world.pass(1);
    world.put(&["j2"]).await?;
    same!(sweep(world).await?.adopted, 1);
    check!(looked_at(world, "lost").await?.is_some());
    Ok(())
}

/// A job that is deleted, or pushed again, is no longer listed either.
async fn one_that_is_stopped_is_no_longer_named(world: &World) -> Outcome {
    for id in ["j1", "j2", "j3"] {
        foreign(world, id, &[]).await?;
    }
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for _ in 0..3 {
        walk_and_look(world, AGE).await?;
    }
    foreign(world, "first", &[]).await?;
    let after = ("prerequisites", r#"["first"]"#);
    foreign(world, "waits", &[after]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for _ in 0..3 {
        walk_and_look(world, AGE).await?;
    }
    same!(stale(world).await?.len(), 5);
    let jobs = [world.read("j1").await?, world.read("j2").await?];
    world.broker.cancel(&jobs[0], "enough", false).await?;
    world.broker.delete(&jobs[1]).await?;
    // Its client pushes it again, and a Meshwork worker runs it.
    world.push("j3").await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    // Nor is a job listed that waits for prerequisites, or for a worker.
    world.push("waits").await?;
    check!(world.take(5).await?.is_empty());
    same!(stale(world).await?, ["first"]);
    world.push("first").await?;
    walk_and_look(world, AGE).await?;
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// The job runs at once, as for the first time.
async fn people_may_repeat_a_stale_job(world: &World) -> Outcome {
    foreign(world, "away", &[]).await?;
    foreign(world, "runs", &[("status", "started")]).await?;
    world.put(&["ours"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for _ in 0..2 {
        walk_and_look(world, AGE).await?;
    }
    for _ in 0..2 {
        walk_and_look(world, 1_000).await?;
    }
    let mut named = stale(world).await?;
    named.sort();
    same!(named, ["away", "ours", "runs"]);
    for id in ["away", "ours", "runs"] {
        let job = world.read(id).await?;
        same!(world.broker.retry(&job).await?, Retried::Queued);
        same!(world.broker.retry(&job).await?, Retried::Unfinished);
    }
    same!(stale(world).await?.len(), 0);
    let taken = world.take(5).await?;
    same!(ids(&taken), ["away", "ours", "runs"]);
    // The list at which its client waits is unknown.
    world.finish(&taken[0], "42").await?;
    let reply = format!("{}away", world.keys().legacy_reply_prefix());
    same!(world.list(&world.reply("away")).await?, ["42"]);
    same!(world.list(&reply).await?, ["42"]);
    Ok(())
}

/// An entry in the list of stale jobs does not change this.
async fn a_waiting_or_running_job_is_not_repeated(world: &World) -> Outcome {
    world.put(&["runs", "stands"]).await?;
    let mut late = world.job("late")?;
    late.when = Some(meshwork_model::job::When::In(7_200_000));
    let mut stops = world.job("stops")?;
    stops.route.group = Some("io".parse()?);
    world.put_jobs(&[late, stops]).await?;
    world.take_one().await?;
    start(world, "stops").await?;
    write(world, "stops", &["mw_stop", "enough"]).await?;
    let group = world.queue_of("osis:group:io");
    world.raw::<()>(&["DEL", &group]).await?;
    for id in ["runs", "stands", "late", "stops"] {
        let member = format!("away {id}");
        world
            .raw::<()>(&["ZADD", &world.keys().stale(), "1", &member])
            .await?;
        let job = world.read(id).await?;
        same!(world.broker.retry(&job).await?, Retried::Unfinished);
    }
    // A job that will be stale later is not stale yet.
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    let member = "started stands";
    world.raw::<()>(&["DEL", &world.keys().stale()]).await?;
    world
        .raw::<()>(&["ZADD", &world.keys().stale(), "9999999999999", member])
        .await?;
    let job = world.read("stands").await?;
    same!(world.broker.retry(&job).await?, Retried::Unfinished);
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// There are 10,000 in total, of which half may be foreign. Waiting jobs do not count.
async fn suspects_are_bounded_and_ours_come_first(world: &World) -> Outcome {
    let (watch, stale) = (world.keys().watch(), world.keys().stale());
    let (mut waits, mut suspects) = (redis::cmd("ZADD"), redis::cmd("ZADD"));
    waits.arg(&watch);
    suspects.arg(&stale);
    for n in 1..10_000 {
        waits.arg(9_999_999_999_999_u64).arg(format!("w{n}"));
        if n < 5_000 {
            suspects.arg(1).arg(format!("away s{n}"));
        }
    }
    let conn = &mut world.conn().clone();
    waits.query_async::<()>(conn).await?;
    suspects.query_async::<()>(conn).await?;
    foreign(world, "f1", &[]).await?;
    foreign(world, "f2", &[]).await?;
    world.put(&["j1", "j2"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    // One foreign job, and both of Meshwork's.
    same!(sweep(world).await?.adopted, 3);
    let count: usize = world.raw(&["ZCARD", &stale]).await?;
    same!(count, 5_002);
    let mut suspects = redis::cmd("ZADD");
    suspects.arg(&stale);
    for n in 0..4_997 {
        suspects.arg(1).arg(format!("away t{n}"));
    }
    suspects.query_async::<()>(conn).await?;
    world.put(&["j3", "j4"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.pass(WALK);
    same!(sweep(world).await?.adopted, 1);
    Ok(())
}

/// Keys of another type in their place do not end a check; no job is pushed blindly then.
async fn what_is_known_only_helps(world: &World) -> Outcome {
    foreign(world, "theirs", &[]).await?;
    world.put(&["ours"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    let broker = rescuing(world, 5);
    while broker.scan_orphans().await?.next != 0 {}
    for key in [world.keys().stale(), world.keys().known_lists()] {
        world.raw::<()>(&["SET", &key, "x"]).await?;
    }
    let mut pushed = Vec::new();
    for _ in 0..9 {
        world.pass(5_000);
        pushed.extend(broker.check_orphans().await?.pushed);
    }
    same!(pushed, ["ours"]);
    Ok(())
}
