//! Rescue of foreign jobs: they are listed, and pushed again only if that is configured.

use meshwork_broker::{Broker, Retried};

use crate::cases::harness::legacy_worker::{looked_at, migrate, old, write};
use crate::cases::harness::world::Got;
use crate::cases::orphans::rescue::{AGE, WALK, foreign, rescuing, stale, walk_and_look};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    jobs_of_others_are_named_and_left,
    jobs_of_others_are_rescued_where_it_is_said,
    not_before_all_queues_have_been_met,
    wherever_they_stand_they_are_left,
    a_type_that_nobody_can_tell_is_named,
    what_others_ended_is_no_longer_named,
    what_somebody_started_is_no_longer_away,
    where_it_is_no_longer_said_they_are_left,
    what_was_noted_before_is_rescued_too,
    the_rule_of_a_worker_holds_whoever_leads,
    the_shortest_rule_of_live_workers_holds,
    queues_without_jobs_take_no_share_of_the_search,
    too_many_known_queues_are_forgotten,
];

/// Nothing is written into their records.
async fn jobs_of_others_are_named_and_left(world: &World) -> Outcome {
    foreign(world, "away", &[]).await?;
    foreign(world, "runs", &[("status", "started")]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    // A job that waits for an old worker.
    foreign(world, "old", &[]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.raw::<()>(&["LPUSH", &old(world), "old"]).await?;
    let records = (world.record("away").await?, world.record("runs").await?);
    for _ in 0..20 {
        same!(walk_and_look(world, AGE).await?.len(), 0);
    }
    same!(
        (world.record("away").await?, world.record("runs").await?),
        records
    );
    same!(world.waiting().await?.len(), 0);
    let mut named = stale(world).await?;
    named.sort();
    same!(named, ["away", "runs"]);
    let started: Vec<_> = world.broker.list_stale(0, 9).await?;
    let started = started
        .iter()
        .filter(|job| job.started)
        .map(|job| job.id.as_str());
    same!(started.collect::<Vec<_>>(), ["runs"]);
    let stats = world.broker.stats(&mut Default::default(), true).await?;
    same!(stats.stale, 2);
    Ok(())
}

/// The reply goes to both lists at which their clients may wait.
async fn jobs_of_others_are_rescued_where_it_is_said(world: &World) -> Outcome {
    foreign(world, "away", &[]).await?;
    foreign(world, "runs", &[("status", "started")]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    let broker = rescuing(world, 5);
    let (mut pushed, mut rounds) = (Vec::new(), 0);
    while pushed.len() < 2 && rounds < 30 {
        while broker.scan_orphans().await?.next != 0 {}
        pushed.extend(broker.check_orphans().await?.pushed);
        world.pass(5_000);
        rounds += 1;
    }
    pushed.sort();
    same!(pushed, ["away", "runs"]);
    // The second walk must be over for the first of them: it begins 10 s after the first one.
    check!((3..=5).contains(&rounds));
    for claimed in world.take(5).await? {
        world.finish(&claimed, "42").await?;
        let id = &claimed.job.id;
        same!(world.list(&world.reply(id)).await?, ["42"]);
        let reply = format!("{}{id}", world.keys().legacy_reply_prefix());
        same!(world.list(&reply).await?, ["42"]);
    }
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// A client may have chosen a queue that did not exist before.
async fn not_before_all_queues_have_been_met(world: &World) -> Outcome {
    let broker = rescuing(world, 5);
    while broker.scan_orphans().await?.next != 0 {}
    world.pass(WALK);
    foreign(world, "j1", &[]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    while broker.scan_orphans().await?.next != 0 {}
    // After the walk read that list.
    let list = world.queue_of("osis:group:io");
    world.raw::<()>(&["LPUSH", &list, "j1"]).await?;
    for _ in 0..10 {
        world.pass(5_000);
        same!(broker.check_orphans().await?.pushed.len(), 0);
    }
    world.pass(WALK);
    while broker.scan_orphans().await?.next != 0 {}
    for _ in 0..4 {
        world.pass(5_000);
        same!(broker.check_orphans().await?.pushed.len(), 0);
    }
    same!(world.list(&list).await?, ["j1"]);
    same!(looked_at(world, "j1").await?, None);
    Ok(())
}

/// The list is that of a group, an instance, a priority, another type, or an old list.
async fn wherever_they_stand_they_are_left(world: &World) -> Outcome {
    let broker = rescuing(world, 5);
    let lists = [
        ("j1", world.queue_of("osis:group:io")),
        ("j2", world.queue_of("osis:group:io:inst:7")),
        ("j3", world.queue_of("osis:prio:0")),
        ("j4", world.queue_of("sal")),
        ("j5", old(world)),
    ];
    for (id, list) in &lists {
        foreign(world, id, &[]).await?;
        world.raw::<()>(&["LPUSH", list, id]).await?;
    }
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for _ in 0..40 {
        world.pass(5_000);
        while broker.scan_orphans().await?.next != 0 {}
        same!(broker.check_orphans().await?.pushed.len(), 0);
    }
    for (id, list) in &lists {
        same!(world.list(list).await?, [*id]);
    }
    same!(stale(world).await?.len(), 0);
    Ok(())
}

/// The queue of such a job is unknown.
async fn a_type_that_nobody_can_tell_is_named(world: &World) -> Outcome {
    write(world, "j1", &["status", "dispatched", "script", "1"]).await?;
    let broker = rescuing(world, 5);
    for _ in 0..20 {
        world.pass(5_000);
        while broker.scan_orphans().await?.next != 0 {}
        same!(broker.check_orphans().await?.pushed.len(), 0);
    }
    same!(stale(world).await?, ["j1"]);
    let job = world.read("j1").await?;
    same!(world.broker.retry(&job).await?, Retried::Missing);
    Ok(())
}

/// Retention of foreign jobs is not Meshwork's decision, but their dependents are notified.
async fn what_others_ended_is_no_longer_named(world: &World) -> Outcome {
    foreign(world, "j1", &[("status", "started")]).await?;
    let mut next = world.job("j2")?;
    next.depends_on = vec!["j1".parse()?];
    world.put_jobs(&[next]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for _ in 0..4 {
        walk_and_look(world, AGE).await?;
    }
    same!(stale(world).await?, ["j1"]);
    write(world, "j1", &["status", "finished"]).await?;
    walk_and_look(world, AGE).await?;
    same!(stale(world).await?.len(), 0);
    same!(looked_at(world, "j1").await?, None);
    let ended = world.keys().ended();
    same!(
        world.raw::<Option<u64>>(&["ZSCORE", &ended, "j1"]).await?,
        None
    );
    check!(!world.broker.resolve_dependents().await?);
    same!(world.waiting().await?, ["j2"]);
    Ok(())
}

/// Nor is it stale before its timeout.
async fn what_somebody_started_is_no_longer_away(world: &World) -> Outcome {
    foreign(world, "j1", &[("timeout", "300")]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for _ in 0..3 {
        walk_and_look(world, AGE).await?;
    }
    same!(stale(world).await?, ["j1"]);
    write(world, "j1", &["status", "started"]).await?;
    walk_and_look(world, AGE).await?;
    same!(stale(world).await?.len(), 0);
    for _ in 0..10 {
        walk_and_look(world, AGE).await?;
    }
    same!(stale(world).await?, ["j1"]);
    Ok(())
}

/// Returns the ids that are pushed again within `rounds` of 5 s, of which each begins a scan that is due.
async fn rounds(world: &World, broker: &Broker, rounds: usize) -> Got<Vec<String>> {
    let mut pushed = Vec::new();
    for _ in 0..rounds {
        while broker.scan_orphans().await?.next != 0 {}
        pushed.extend(broker.check_orphans().await?.pushed);
        world.pass(5_000);
    }
    pushed.sort();
    Ok(pushed)
}

/// Workers with a rule note it for all others, as long as they live.
async fn the_rule_of_a_worker_holds_whoever_leads(world: &World) -> Outcome {
    foreign(world, "away", &[]).await?;
    foreign(world, "runs", &[("status", "started")]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.broker.note_rescue().await?;
    same!(rounds(world, &world.broker, 15).await?.len(), 0);
    rescuing(world, 5).note_rescue().await?;
    same!(rounds(world, &world.broker, 7).await?, ["away", "runs"]);
    // The worker is gone: its note has expired.
    foreign(world, "later", &[]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.pass(35_000);
    same!(rounds(world, &world.broker, 30).await?.len(), 0);
    Ok(())
}

/// Whoever notes its rule last. The rule of the others holds without a gap when the worker with the shortest one is gone.
async fn the_shortest_rule_of_live_workers_holds(world: &World) -> Outcome {
    let [short, long] = [5, 600].map(|seconds| rescuing(world, seconds));
    foreign(world, "away", &[]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for noting in [&long, &short, &long] {
        noting.note_rescue().await?;
    }
    same!(rounds(world, &world.broker, 6).await?, ["away"]);
    short.note_rescue().await?;
    let walk = world.keys().walk();
    let mut ages = Vec::new();
    for _ in 0..5 {
        long.note_rescue().await?;
        let words = ["HMGET", &walk, "rescue", "rescue_until"];
        let (age, until): (u64, u64) = world.raw(&words).await?;
        check!(until > world.now() + 9_999);
        ages.push(age);
        world.pass(10_000);
    }
    same!(ages, [5_000, 5_000, 5_000, 600_000, 600_000]);
    Ok(())
}

async fn queues_without_jobs_take_no_share_of_the_search(world: &World) -> Outcome {
    let known = world.keys().known_lists();
    let now = world.now().to_string();
    for n in 0..300 {
        let queue = world.queue_of(&format!("osis:group:g:inst:{n}"));
        world.raw::<()>(&["ZADD", &known, &now, &queue]).await?;
    }
    let ids: Vec<_> = (0..900).map(|n| format!("w{n}")).collect();
    let waiting = world.queue_of("sal");
    let words = ["LPUSH", waiting.as_str()].into_iter();
    let words: Vec<_> = words.chain(ids.iter().map(String::as_str)).collect();
    world.raw::<()>(&words).await?;
    foreign(world, "away", &[]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    same!(rounds(world, &rescuing(world, 5), 4).await?, ["away"]);
    Ok(())
}

/// A search of all known queues would be incomplete otherwise, so that no job could be rescued.
async fn too_many_known_queues_are_forgotten(world: &World) -> Outcome {
    let known = world.keys().known_lists();
    let before = (world.now() - 1_000).to_string();
    for from in [0, 600] {
        let queue = |n: usize| world.queue_of(&format!("osis:group:g:inst:{n}"));
        let queues: Vec<_> = (from..from + 600).map(queue).collect();
        let pairs = queues
            .iter()
            .flat_map(|queue| [before.as_str(), queue.as_str()]);
        let words: Vec<_> = ["ZADD", known.as_str()].into_iter().chain(pairs).collect();
        world.raw::<()>(&words).await?;
    }
    foreign(world, "stays", &[]).await?;
    same!(rounds(world, &rescuing(world, 5), 1).await?.len(), 0);
    check!(world.raw::<usize>(&["ZCARD", &known]).await? <= 1_000);
    world.pass(10_000);
    foreign(world, "away", &[]).await?;
    world
        .raw::<()>(&["LREM", &world.queue(), "0", "away"])
        .await?;
    same!(rounds(world, &rescuing(world, 5), 6).await?, ["away"]);
    Ok(())
}

/// The worker that runs the current maintenance decides, unless another one has noted its rule.
async fn where_it_is_no_longer_said_they_are_left(world: &World) -> Outcome {
    foreign(world, "j1", &[]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    while rescuing(world, 5).scan_orphans().await?.next != 0 {}
    same!(world.field("j1", "mw_queue").await?, Some(world.queue()));
    for _ in 0..9 {
        same!(walk_and_look(world, AGE).await?.len(), 0);
    }
    same!(stale(world).await?, ["j1"]);
    Ok(())
}

/// Its type migrates now, or the rescue is configured now.
async fn what_was_noted_before_is_rescued_too(world: &World) -> Outcome {
    for id in ["j1", "j2"] {
        foreign(world, id, &[("status", "started")]).await?;
    }
    write(world, "j2", &["script_type", "sal"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    same!(walk_and_look(world, WALK).await?.len(), 0);
    same!(walk_and_look(world, AGE).await?.len(), 0);
    migrate(world, "dual").await?;
    let mut pushed = Vec::new();
    for _ in 0..4 {
        pushed.extend(walk_and_look(world, AGE).await?);
    }
    same!(pushed, ["j1"]);
    let broker = rescuing(world, 5);
    for _ in 0..20 {
        world.pass(5_000);
        while broker.scan_orphans().await?.next != 0 {}
        pushed.extend(broker.check_orphans().await?.pushed);
    }
    same!(pushed, ["j1", "j2"]);
    Ok(())
}
