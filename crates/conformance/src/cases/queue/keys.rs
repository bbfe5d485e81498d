//! Keys: rotation in a fair queue, weights, and jobs that are set aside until their key may run.

use meshwork_broker::{Deleted, Retried};
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Priority;

use crate::cases::harness::options::{
    LOOK_MS, claim, keyed, members, promote, put_keyed, set, taken, weigh,
};
use crate::cases::harness::world::ids;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    each_key_has_its_turn,
    a_weight_is_so_many_turns,
    a_weight_has_its_bounds,
    without_fairness_order_is_order,
    a_job_set_aside_waits_as_others_do,
    a_stopped_head_passes_its_turn_on,
    a_deleted_head_passes_its_turn_on,
    a_job_set_aside_can_be_stopped_and_deleted,
    heads_that_others_took_are_found,
    heads_that_were_lost_are_found,
    a_deleted_record_holds_up_no_key,
    retries_come_back_in_the_order_of_submission,
    an_ended_job_that_runs_again_takes_its_turn,
    a_queue_that_is_fair_no_more_lets_all_in,
    each_list_has_turns_of_its_own,
    a_job_that_waited_for_others_takes_its_turn,
    fair_and_limited,
    a_job_that_returns_is_the_first_of_its_key,
    a_returned_job_that_ends_brings_the_next,
    a_check_lets_no_job_pass_its_head,
    a_job_waits_for_the_earlier_ones_of_its_key,
    a_lost_head_of_a_limited_key_is_found,
    a_stopped_head_of_a_limited_key_brings_the_next,
    a_spoilt_queue_keeps_what_was_set_aside,
    no_id_is_lost_where_nothing_can_be_set_aside,
];

/// Claims and ends one job at a time; returns their order.
async fn order(world: &World, n: usize) -> Result<String, crate::cases::Failure> {
    let mut order = Vec::new();
    for _ in 0..n {
        let jobs = claim(world, 1).await?.jobs;
        order.extend(ids(&jobs).into_iter().map(str::to_owned));
        for job in &jobs {
            world.finish(job, "42").await?;
        }
    }
    Ok(order.join(" "))
}

/// The number of jobs of a key does not matter.
async fn each_key_has_its_turn(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3", "a4"]).await?;
    put_keyed(world, "b", &["b1", "b2"]).await?;
    world.put(&["x"]).await?;
    put_keyed(world, "c", &["c1", "c2"]).await?;
    same!(world.waiting().await?, ["a1", "b1", "x", "c1"]);
    same!(
        members(world, "BACKLOG", Some("a")).await?,
        ["a2", "a3", "a4"]
    );
    same!(order(world, 9).await?, "a1 b1 x c1 a2 b2 c2 a3 a4");
    Ok(())
}

/// The weights are three, one and one.
async fn a_weight_is_so_many_turns(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    weigh(world, "a", "3").await?;
    put_keyed(world, "a", &["a1", "a2", "a3", "a4", "a5", "a6", "a7"]).await?;
    put_keyed(world, "b", &["b1", "b2", "b3"]).await?;
    put_keyed(world, "c", &["c1", "c2", "c3"]).await?;
    same!(order(world, 10).await?, "a1 a2 a3 b1 c1 a4 a5 a6 b2 c2");
    same!(order(world, 9).await?, "a7 b3 c3");
    Ok(())
}

/// An invalid weight counts as one; the least is one, the greatest a hundred.
async fn a_weight_has_its_bounds(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    for (n, (weight, heads)) in [("x", 1), ("0", 1), ("-5", 1), ("2", 2), ("100000", 100)]
        .into_iter()
        .enumerate()
    {
        let key = format!("k{n}");
        weigh(world, &key, weight).await?;
        let names: Vec<_> = (0..102).map(|job| format!("j{n}-{job}")).collect();
        put_keyed(
            world,
            &key,
            &Vec::from_iter(names.iter().map(String::as_str)),
        )
        .await?;
        same!(
            (weight, members(world, "HEADS", Some(&key)).await?.len()),
            (weight, heads)
        );
    }
    Ok(())
}

/// Keys have no effect then.
async fn without_fairness_order_is_order(world: &World) -> Outcome {
    put_keyed(world, "a", &["a1", "a2"]).await?;
    put_keyed(world, "b", &["b1"]).await?;
    same!(world.waiting().await?, ["a1", "a2", "b1"]);
    same!(taken(world, 9).await?, ["a1", "a2", "b1"]);
    check!(!world.all().await?.contains("backlog"));
    Ok(())
}

/// The record does not show the difference.
async fn a_job_set_aside_waits_as_others_do(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2"]).await?;
    same!(world.status("a2").await?, "dispatched");
    same!(world.field("a2", "mw_queue").await?, Some(world.queue()));
    same!(promote(world).await?, (0, Some(LOOK_MS)));
    world.pass(LOOK_MS);
    same!(promote(world).await?, (1, Some(LOOK_MS)));
    same!(world.waiting().await?, ["a1"]);
    Ok(())
}

/// The next job of the key is queued at once.
async fn a_stopped_head_passes_its_turn_on(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3"]).await?;
    let job = world.read("a1").await?;
    world.broker.cancel(&job, "stopped", false).await?;
    same!(world.waiting().await?, ["a2"]);
    same!(order(world, 3).await?, "a2 a3");
    Ok(())
}

/// The next job of the key is queued at once.
async fn a_deleted_head_passes_its_turn_on(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3"]).await?;
    let job = world.read("a1").await?;
    same!(world.broker.delete(&job).await?, Deleted::Deleted);
    same!(world.waiting().await?, ["a2"]);
    same!(order(world, 3).await?, "a2 a3");
    Ok(())
}

/// Such a job holds no turn, so no other job is queued.
async fn a_job_set_aside_can_be_stopped_and_deleted(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3", "a4"]).await?;
    let job = world.read("a2").await?;
    world.broker.cancel(&job, "stopped", false).await?;
    world.broker.delete(&world.read("a3").await?).await?;
    same!(world.waiting().await?, ["a1"]);
    same!(members(world, "BACKLOG", Some("a")).await?, ["a4"]);
    same!(order(world, 4).await?, "a1 a4");
    Ok(())
}

/// A foreign worker without support for keys has started it.
async fn heads_that_others_took_are_found(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3"]).await?;
    let id: String = world.raw(&["RPOP", &world.queue()]).await?;
    world
        .raw::<()>(&["HSET", &world.key(&id), "status", "started"])
        .await?;
    put_keyed(world, "a", &["a4"]).await?;
    check!(world.waiting().await?.is_empty());
    world.pass(LOOK_MS);
    promote(world).await?;
    same!(world.waiting().await?, ["a2"]);
    same!(order(world, 4).await?, "a2 a3 a4");
    Ok(())
}

/// The worker died before it could write `started`.
async fn heads_that_were_lost_are_found(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3"]).await?;
    world.raw::<()>(&["RPOP", &world.queue()]).await?;
    world.pass(LOOK_MS);
    promote(world).await?;
    same!(world.waiting().await?, ["a2"]);
    same!(order(world, 3).await?, "a2 a3");
    Ok(())
}

/// Only the hash is deleted.
async fn a_deleted_record_holds_up_no_key(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3"]).await?;
    world
        .raw::<()>(&["DEL", &world.key("a1"), &world.key("a2")])
        .await?;
    check!(taken(world, 1).await?.is_empty());
    for _ in 0..3 {
        world.pass(LOOK_MS);
        promote(world).await?;
        same!(claim(world, 0).await?.jobs.len(), 0);
        if taken(world, 1).await? == ["a3"] {
            return Ok(());
        }
    }
    Err(crate::cases::Failure::new("the key is held up"))
}

/// A retry comes before later submissions.
async fn retries_come_back_in_the_order_of_submission(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3", "a4"]).await?;
    let run = world.take_one().await?;
    same!(world.waiting().await?, ["a2"]);
    world.fail(&run, FailureKind::Script).await?;
    same!(
        members(world, "BACKLOG", Some("a")).await?,
        ["a1", "a3", "a4"]
    );
    same!(order(world, 4).await?, "a2 a1 a3 a4");
    Ok(())
}

/// The retry counts as submitted now.
async fn an_ended_job_that_runs_again_takes_its_turn(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1"]).await?;
    same!(order(world, 1).await?, "a1");
    put_keyed(world, "a", &["a2", "a3"]).await?;
    let job = world.read("a1").await?;
    same!(world.broker.retry(&job).await?, Retried::Queued);
    same!(world.waiting().await?, ["a2"]);
    same!(order(world, 3).await?, "a2 a1 a3");
    Ok(())
}

/// The jobs are queued in order, a hundred at a time.
async fn a_queue_that_is_fair_no_more_lets_all_in(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    let names: Vec<_> = (0..150).map(|n| format!("a{n:03}")).collect();
    put_keyed(
        world,
        "a",
        &Vec::from_iter(names.iter().map(String::as_str)),
    )
    .await?;
    set(world, "").await?;
    world.pass(LOOK_MS);
    same!(promote(world).await?, (101, Some(0)));
    same!(world.waiting().await?.len(), 101);
    promote(world).await?;
    let all = world.waiting().await?;
    same!(all.len(), 150);
    same!(promote(world).await?, (0, None));
    Ok(())
}

/// Each priority has its own list.
async fn each_list_has_turns_of_its_own(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    let mut jobs = keyed(world, "a", &["h1", "n1", "h2", "n2"])?;
    jobs[0].route.priority = Priority::High;
    jobs[2].route.priority = Priority::High;
    world.put_jobs(&jobs).await?;
    same!(world.waiting().await?, ["n1"]);
    let high = format!("{}:prio:0", world.queue());
    same!(world.list(&high).await?, ["h1"]);
    same!(taken(world, 1).await?, ["n1"]);
    same!(world.waiting().await?, ["n2"]);
    same!(world.list(&high).await?, ["h1"]);
    Ok(())
}

/// The job waits for its turn when its prerequisites have ended.
async fn a_job_that_waited_for_others_takes_its_turn(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    world.put(&["first"]).await?;
    let mut jobs = keyed(world, "a", &["a1", "a2", "a3"])?;
    jobs[0].depends_on.push("first".parse()?);
    world.put_jobs(&jobs).await?;
    let run = world.take_one().await?;
    world.finish(&run, "42").await?;
    same!(world.waiting().await?, ["a2"]);
    same!(members(world, "BACKLOG", Some("a")).await?, ["a1", "a3"]);
    same!(order(world, 3).await?, "a2 a1 a3");
    Ok(())
}

/// The turn passes to the next job when there is a slot.
async fn fair_and_limited(world: &World) -> Outcome {
    set(world, "fair=1 key_concurrency=1").await?;
    put_keyed(world, "a", &["a1", "a2", "a3"]).await?;
    put_keyed(world, "b", &["b1", "b2"]).await?;
    let runs = claim(world, 2).await?.jobs;
    same!(ids(&runs), ["a1", "b1"]);
    check!(world.waiting().await?.is_empty());
    world.finish(&runs[1], "42").await?;
    same!(world.waiting().await?, ["b2"]);
    put_keyed(world, "b", &["b3"]).await?;
    same!(world.waiting().await?, ["b2"]);
    same!(members(world, "HEADS", Some("b")).await?, ["b2"]);
    world.finish(&runs[0], "42").await?;
    same!(world.waiting().await?, ["a2", "b2"]);
    same!(taken(world, 9).await?, ["a2", "b2"]);
    Ok(())
}

/// Of a lost or released job and the ones behind it, none overtakes another.
async fn a_job_that_returns_is_the_first_of_its_key(world: &World) -> Outcome {
    for how in ["lost", "released"] {
        set(world, "key_concurrency=1").await?;
        put_keyed(world, "k", &["a", "b", "c", "d"]).await?;
        let first = claim(world, 4).await?.jobs;
        same!(ids(&first), ["a"]);
        match how {
            "lost" => drop(world.lose_all().await?),
            _ => drop(world.broker.release(&first[0]).await?),
        }
        same!((how, order(world, 4).await?.as_str()), (how, "a b c d"));
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// It was to be stopped, so it does not run again.
async fn a_returned_job_that_ends_brings_the_next(world: &World) -> Outcome {
    for how in ["lost", "released"] {
        set(world, "key_concurrency=1").await?;
        put_keyed(world, "k", &["a", "b"]).await?;
        let first = claim(world, 2).await?.jobs;
        let job = world.read("a").await?;
        world.broker.cancel(&job, "stopped", false).await?;
        match how {
            "lost" => drop(world.lose_all().await?),
            _ => drop(world.broker.release(&first[0]).await?),
        }
        same!((how, world.waiting().await?), (how, vec!["b".to_owned()]));
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// A key has a free slot, and the job for it waits in the queue while the backlog is checked.
async fn a_check_lets_no_job_pass_its_head(world: &World) -> Outcome {
    for how in ["finished", "lost", "released", "allowed"] {
        let limit = match how {
            "allowed" => format!("key_rate=window:1:{LOOK_MS}"),
            _ => "key_concurrency=1".to_owned(),
        };
        set(world, &limit).await?;
        put_keyed(world, "k", &["a", "b", "c", "d"]).await?;
        let first = claim(world, 4).await?.jobs;
        same!(ids(&first), ["a"]);
        match how {
            "lost" => drop(world.lose_all().await?),
            "released" => drop(world.broker.release(&first[0]).await?),
            _ => drop(world.finish(&first[0], "42").await?),
        }
        for _ in 0..3 {
            world.pass(LOOK_MS);
            promote(world).await?;
        }
        let left: &[&str] = match how {
            "lost" | "released" => &["a", "b", "c", "d"],
            _ => &["b", "c", "d"],
        };
        for id in left {
            same!((how, world.waiting().await?), (how, vec![(*id).to_owned()]));
            same!((how, order(world, 1).await?.as_str()), (how, *id));
            world.pass(LOOK_MS);
            promote(world).await?;
        }
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// The rate allows a start again before the backlog was checked.
async fn a_job_waits_for_the_earlier_ones_of_its_key(world: &World) -> Outcome {
    set(world, &format!("key_rate=window:1:{LOOK_MS}")).await?;
    put_keyed(world, "k", &["a", "b"]).await?;
    same!(taken(world, 2).await?, ["a"]);
    put_keyed(world, "k", &["c"]).await?;
    world.pass(LOOK_MS);
    check!(taken(world, 2).await?.is_empty());
    same!(promote(world).await?.0, 2);
    same!(taken(world, 2).await?, ["b"]);
    Ok(())
}

/// The worker died before it could write `started`.
async fn a_lost_head_of_a_limited_key_is_found(world: &World) -> Outcome {
    set(world, "key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b", "c"]).await?;
    let first = claim(world, 3).await?.jobs;
    world.finish(&first[0], "42").await?;
    same!(members(world, "HEADS", Some("k")).await?, ["b"]);
    world.raw::<()>(&["RPOP", &world.queue()]).await?;
    world.pass(LOOK_MS);
    promote(world).await?;
    same!(order(world, 2).await?, "c");
    Ok(())
}

async fn a_stopped_head_of_a_limited_key_brings_the_next(world: &World) -> Outcome {
    set(world, "key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b", "c", "d"]).await?;
    let first = claim(world, 4).await?.jobs;
    world.finish(&first[0], "42").await?;
    same!(world.waiting().await?, ["b"]);
    let b = world.read("b").await?;
    world.broker.cancel(&b, "no", false).await?;
    same!(order(world, 3).await?, "c d");
    Ok(())
}

/// The jobs stay until the queue is a list again.
async fn a_spoilt_queue_keeps_what_was_set_aside(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    put_keyed(world, "a", &["a1", "a2"]).await?;
    let run = world.take_one().await?;
    put_keyed(world, "a", &["a3"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    world.finish(&run, "42").await?;
    world.pass(LOOK_MS);
    promote(world).await?;
    same!(members(world, "BACKLOG", Some("a")).await?, ["a3"]);
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.pass(LOOK_MS);
    promote(world).await?;
    same!(world.waiting().await?, ["a3"]);
    world.raw::<()>(&["FLUSHDB"]).await?;
    set(world, "key_concurrency=1").await?;
    put_keyed(world, "a", &["a1", "a2"]).await?;
    let runs = claim(world, 2).await?.jobs;
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    world.finish(&runs[0], "42").await?;
    world.pass(LOOK_MS);
    promote(world).await?;
    same!(members(world, "BACKLOG", Some("a")).await?, ["a2"]);
    Ok(())
}

/// The claim fails before it takes an id from any of its queues.
async fn no_id_is_lost_where_nothing_can_be_set_aside(world: &World) -> Outcome {
    set(world, "key_concurrency=1").await?;
    put_keyed(world, "a", &["a1", "a2"]).await?;
    let mut other = world.job("x")?;
    other.route.script_type = "sal".parse()?;
    world.put_jobs(&[other]).await?;
    let sal = world.queue_of("sal");
    let feed = world.keys().feed("w", &sal);
    world
        .raw::<()>(&["LMOVE", &sal, &feed, "RIGHT", "LEFT"])
        .await?;
    world
        .raw::<()>(&["SET", &world.named("BACKLOG_INDEX")?, "x"])
        .await?;
    let before = world.all().await?;
    let lists = [sal, world.queue()];
    check!(world.claim("w", &lists, 9).await.is_err());
    world.unchanged(&before).await
}
