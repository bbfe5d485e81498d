//! Paused queues, from which no job is claimed, and draining ones, which accept no job.

use meshwork_broker::{Completed, Enqueued, Released};
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Priority;
use meshwork_model::stored;

use crate::cases::harness::options::{claim, delayed, held, promote, put_keyed, set, taken};
use crate::cases::harness::world::WORKER;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    nothing_starts_while_it_is_paused,
    what_runs_goes_on_and_comes_back,
    ids_on_their_way_go_back,
    it_holds_for_all_priorities,
    other_queues_go_on,
    what_becomes_due_waits,
    a_draining_queue_takes_nothing_in,
    what_is_inside_runs_and_comes_back,
    a_payload_may_be_too_large,
    what_is_no_setting_sets_nothing,
];

/// All jobs start as soon as the pause ends.
async fn nothing_starts_while_it_is_paused(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    set(world, "paused=1").await?;
    let before = world.all().await?;
    let fetched = claim(world, 5).await?;
    check!(fetched.jobs.is_empty() && !fetched.more);
    same!(held(world, 1).await?, Some(200));
    world.unchanged(&before).await?;
    set(world, "paused=0").await?;
    same!(held(world, 0).await?, None);
    same!(taken(world, 5).await?, ["a", "b"]);
    Ok(())
}

/// A pause stops no run.
async fn what_runs_goes_on_and_comes_back(world: &World) -> Outcome {
    put_keyed(world, "k", &["a", "b", "c", "d"]).await?;
    let jobs = world.take(4).await?;
    set(world, "paused=1").await?;
    same!(world.finish(&jobs[0], "42").await?, Completed::Finished);
    same!(world.broker.release(&jobs[1]).await?, Released::Released);
    world.fail(&jobs[2], FailureKind::Script).await?;
    same!(world.lose_all().await?.requeued, ["d"]);
    check!(taken(world, 4).await?.is_empty());
    set(world, "").await?;
    same!(taken(world, 4).await?, ["d", "b", "c"]);
    Ok(())
}

/// Prefetched ids return in order, so that other workers of the queue see them.
async fn ids_on_their_way_go_back(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    world.put(&["a", "b", "c"]).await?;
    let (queue, feed) = (world.queue(), world.feed(WORKER));
    for _ in 0..2 {
        let on = ["LMOVE", &queue, &feed, "RIGHT", "LEFT"];
        world.raw::<()>(&on).await?;
    }
    set(world, "paused=1").await?;
    check!(taken(world, 3).await?.is_empty());
    same!(world.waiting().await?, ["a", "b", "c"]);
    check!(world.list(&feed).await?.is_empty());
    Ok(())
}

/// All priorities are one queue.
async fn it_holds_for_all_priorities(world: &World) -> Outcome {
    let queue = world.queue();
    let lists = [
        format!("{queue}:prio:0"),
        queue.clone(),
        format!("{queue}:prio:2"),
    ];
    for (id, priority) in [
        ("h", Priority::High),
        ("n", Priority::Normal),
        ("l", Priority::Low),
    ] {
        let mut job = world.job(id)?;
        job.route.priority = priority;
        world.put_jobs(&[job]).await?;
    }
    set(world, "paused=1").await?;
    let fetched = world.claim(WORKER, &lists, 5).await?;
    check!(fetched.jobs.is_empty());
    let names: Vec<_> = fetched
        .blocked
        .iter()
        .map(|(list, _)| list.clone())
        .collect();
    same!(names, lists);
    set(world, "").await?;
    same!(world.claim(WORKER, &lists, 5).await?.jobs.len(), 3);
    Ok(())
}

/// Queues before and after it are not paused.
async fn other_queues_go_on(world: &World) -> Outcome {
    let lists = [world.queue_of("sal"), world.queue(), world.queue_of("v")];
    for (id, script_type) in [("a", "sal"), ("b", "osis"), ("c", "v")] {
        let mut job = world.job(id)?;
        job.route.script_type = script_type.parse()?;
        world.put_jobs(&[job]).await?;
    }
    set(world, "paused=1").await?;
    let fetched = world.claim(WORKER, &lists, 5).await?;
    same!(crate::cases::harness::world::ids(&fetched.jobs), ["a", "c"]);
    same!(fetched.blocked.len(), 1);
    same!(fetched.blocked[0].0, world.queue());
    Ok(())
}

/// The job waits in its queue.
async fn what_becomes_due_waits(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5)?]).await?;
    set(world, "paused=1").await?;
    world.pass(5);
    same!(promote(world).await?, (1, None));
    same!(world.waiting().await?, ["a"]);
    check!(taken(world, 1).await?.is_empty());
    Ok(())
}

/// Nothing is written, and the job may be submitted later.
async fn a_draining_queue_takes_nothing_in(world: &World) -> Outcome {
    set(world, "draining=1").await?;
    let before = world.all().await?;
    let mut high = world.job("b")?;
    high.route.priority = Priority::High;
    let jobs = [world.job("a")?, high, delayed(world, "c", 5)?];
    same!(
        world.broker.enqueue(&jobs).await?,
        [Enqueued::Draining, Enqueued::Draining, Enqueued::Draining]
    );
    world.unchanged(&before).await?;
    let mut other = world.job("d")?;
    other.route.script_type = "sal".parse()?;
    same!(world.broker.enqueue(&[other]).await?, [Enqueued::Stored]);
    set(world, "draining=0").await?;
    world.put_jobs(&jobs).await
}

/// Jobs of the queue run and return until it is empty.
async fn what_is_inside_runs_and_comes_back(world: &World) -> Outcome {
    put_keyed(world, "k", &["a", "b"]).await?;
    world.put_jobs(&[delayed(world, "c", 5)?]).await?;
    set(world, "draining=1").await?;
    let jobs = world.take(2).await?;
    world.fail(&jobs[0], FailureKind::Script).await?;
    world.broker.release(&jobs[1]).await?;
    world.pass(5);
    promote(world).await?;
    same!(taken(world, 5).await?, ["b", "a", "c"]);
    let said = world.broker.enqueue(&[world.job("a")?]).await?;
    same!(said, [Enqueued::Exists]);
    Ok(())
}

/// The size counts all bytes of the record's values, without the names of the fields.
async fn a_payload_may_be_too_large(world: &World) -> Outcome {
    let mut job = world.job("a")?;
    job.env_vars.insert("A".to_owned(), "1".to_owned());
    let options = stored::options(world.keys(), &job).into_iter();
    let values = stored::values(world.keys(), &job).into_iter();
    let values = values.chain(options.map(|(_, value)| value));
    let names = job.id.as_str().len() + job.route.script_type.as_str().len();
    let bytes = names + values.map(|value| value.len()).sum::<usize>();
    set(world, &format!("payload={}", bytes - 1)).await?;
    let before = world.all().await?;
    let said = world.broker.enqueue(std::slice::from_ref(&job)).await?;
    same!(said, [Enqueued::Large(bytes as u64)]);
    world.unchanged(&before).await?;
    set(world, &format!("payload={bytes}")).await?;
    world.put_jobs(&[job]).await
}

/// A typing error blocks no queue and loses no job.
async fn what_is_no_setting_sets_nothing(world: &World) -> Outcome {
    let slips = [
        "concurrency=many",
        "key_concurrency=1x",
        "rate=window:1",
        "rate=drops:1:1000",
        "rate=bucket:0:0:1",
        "key_rate=window:x:y",
        "payload=big",
        "paused",
        "fair",
        "=1",
        "rate=window:0:1000",
        "key_rate=bucket:1:0",
    ];
    for (n, slip) in slips.into_iter().enumerate() {
        set(world, slip).await?;
        let names = ["a", "b", "c"].map(|job| format!("{job}{n}"));
        put_keyed(world, "k", &names.each_ref().map(String::as_str)).await?;
        same!((slip, taken(world, 3).await?), (slip, names.to_vec()));
    }
    Ok(())
}
