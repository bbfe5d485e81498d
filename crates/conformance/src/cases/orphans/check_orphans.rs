//! watch: open jobs to which no other script returns.

use meshwork_broker::Registration;
use meshwork_model::job::limits::MAX_LOST;
use meshwork_model::name::Group;
use meshwork_model::route::Fallback;

use crate::cases::harness::legacy_worker::{
    AGE, look_after, looked_at, migrate, old, pop, put_old, set, start, write,
};
use crate::cases::harness::world::{START, ids};
use crate::cases::orphans::track_orphans::adopt;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    what_stands_on_its_old_list_is_left,
    an_id_that_was_just_popped_is_given_time,
    one_that_stays_away_is_pushed_again,
    no_list_gets_it_twice,
    put_back_by_hand_it_is_given_time_anew,
    a_run_is_given_its_timeout,
    a_worker_that_writes_dates_is_alive,
    a_job_that_loses_too_many_workers_is_poison,
    a_stop_that_was_asked_for_holds,
    finished_by_the_record_alone,
    failed_by_the_record_alone,
    a_waiting_job_ends_with_its_time,
    a_waiting_job_has_time,
    a_waiting_job_learns_what_no_script_told,
    a_fallback_is_taken_when_the_worker_is_gone,
    a_fallback_leaves_the_old_list_as_it_is,
    a_job_under_a_lease_is_left_to_it,
    a_job_that_waits_for_its_retry_is_left,
];

/// The number of checks does not matter.
async fn what_stands_on_its_old_list_is_left(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    let record = world.record("j1").await?;
    for _ in 0..5 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(world.record("j1").await?, record);
    same!(world.list(&old(world)).await?, ["j1"]);
    same!(world.waiting().await?, ["j1"]);
    same!(looked_at(world, "j1").await?, Some(START + 6 * AGE));
    same!(world.broker.check_orphans().await?.looked, 0);
    Ok(())
}

/// The worker has yet to write `started`.
async fn an_id_that_was_just_popped_is_given_time(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    world.pass(9 * AGE);
    pop(world).await?;
    same!(look_after(world, 0).await?.len(), 0);
    start(world, "j1").await?;
    for _ in 0..5 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(world.status("j1").await?, "started");
    Ok(())
}

/// The job is dispatched like a new one, and runs once.
async fn one_that_stays_away_is_pushed_again(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    pop(world).await?;
    check!(world.take(1).await?.is_empty());
    same!(look_after(world, AGE).await?.len(), 0);
    same!(look_after(world, AGE - 1).await?.len(), 0);
    same!(look_after(world, 1).await?, ["j1"]);
    same!(world.waiting().await?, ["j1"]);
    same!(world.list(&old(world)).await?, ["j1"]);
    same!(world.field("j1", "mw_seen").await?, None);
    same!(looked_at(world, "j1").await?, Some(START + 3 * AGE));
    let last = world.events().await?.pop().unwrap_or_default();
    same!(last, ["j1", "requeue", "watch", ""]);
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(pop(world).await?, None);
    same!(look_after(world, 9 * AGE).await?.len(), 0);
    Ok(())
}

/// Its own queue had it all the while.
async fn no_list_gets_it_twice(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    pop(world).await?;
    for _ in 0..2 {
        look_after(world, AGE).await?;
    }
    same!(world.waiting().await?, ["j1"]);
    same!(world.list(&old(world)).await?, ["j1"]);
    Ok(())
}

/// The time of the earlier check does not count.
async fn put_back_by_hand_it_is_given_time_anew(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1"]).await?;
    pop(world).await?;
    look_after(world, AGE).await?;
    world.raw::<()>(&["LPUSH", &old(world), "j1"]).await?;
    look_after(world, AGE).await?;
    pop(world).await?;
    same!(look_after(world, AGE).await?.len(), 0);
    same!(look_after(world, AGE).await?, ["j1"]);
    Ok(())
}

/// The timeout counts from the first check, plus the migration's age.
async fn a_run_is_given_its_timeout(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut job = world.job("j1")?;
    job.timeout = 7;
    world.put_jobs(&[job]).await?;
    start(world, "j1").await?;
    look_after(world, AGE).await?;
    for _ in 0..7 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    check!(world.take(5).await?.is_empty());
    same!(look_after(world, AGE - 1).await?.len(), 0);
    same!(look_after(world, 1).await?, ["j1"]);
    let job = world.read("j1").await?;
    same!((job.status.as_str(), job.lost), ("dispatched", 1));
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(pop(world).await?, None);
    Ok(())
}

/// Each new time in the record starts the timeout again.
async fn a_worker_that_writes_dates_is_alive(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut job = world.job("j1")?;
    job.timeout = 2;
    world.put_jobs(&[job]).await?;
    start(world, "j1").await?;
    for n in 0..10 {
        write(world, "j1", &["updated_at", &format!("day {n}")]).await?;
        same!(look_after(world, AGE).await?.len(), 0);
    }
    for _ in 0..2 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(look_after(world, AGE).await?, ["j1"]);
    Ok(())
}

/// The same limit holds for expired leases.
async fn a_job_that_loses_too_many_workers_is_poison(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut job = world.job("j1")?;
    job.timeout = 1;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    for loss in 1..=MAX_LOST {
        start(world, "j1").await?;
        same!(look_after(world, AGE).await?.len(), 0);
        let pushed = look_after(world, 2 * AGE).await?;
        same!(pushed.len(), usize::from(loss < MAX_LOST));
    }
    let job = world.read("j1").await?;
    let why = "lost: 5 workers went away while they ran this job";
    same!(job.error.as_deref(), Some(why));
    same!(
        (job.status.as_str(), job.dead.as_deref()),
        ("error", Some("poison"))
    );
    same!(world.list(&world.reply("j1")).await?, [why]);
    same!(
        world
            .raw::<Vec<String>>(&["ZRANGE", &world.keys().dead(), "0", "-1"])
            .await?,
        ["j1"]
    );
    same!(looked_at(world, "j1").await?, None);
    Ok(())
}

/// The job does not start again because the worker that should stop it is dead.
async fn a_stop_that_was_asked_for_holds(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut job = world.job("j1")?;
    job.timeout = 1;
    world.put_jobs(&[job]).await?;
    start(world, "j1").await?;
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "enough", false).await?;
    look_after(world, AGE).await?;
    same!(look_after(world, 2 * AGE).await?.len(), 0);
    let job = world.read("j1").await?;
    same!(
        (job.status.as_str(), job.error.as_deref()),
        ("error", Some("enough"))
    );
    Ok(())
}

/// Its dependents run, retention has it, and no job is notified twice.
async fn finished_by_the_record_alone(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut job = world.job("j1")?;
    job.reply = true;
    let mut next = world.job("j2")?;
    next.depends_on = vec!["j1".parse()?];
    world.put_jobs(&[job, next]).await?;
    start(world, "j1").await?;
    write(world, "j1", &["status", "finished", "output", "42"]).await?;
    same!(world.broker.check_orphans().await?.looked, 0);
    look_after(world, AGE).await?;
    same!(looked_at(world, "j1").await?, None);
    check!(!world.broker.resolve_dependents().await?);
    same!(ids(&world.take(5).await?), ["j2"]);
    let ended = world.keys().ended();
    same!(
        world.raw::<Option<u64>>(&["ZSCORE", &ended, "j1"]).await?,
        Some(START + AGE)
    );
    same!(world.list(&world.reply("j1")).await?.len(), 0);
    same!(world.field("j1", "mw_lock").await?, None);
    same!(world.field("j1", "output").await?.as_deref(), Some("42"));
    let count = |events: Vec<[String; 4]>| {
        events
            .iter()
            .filter(|event| event[0] == "j1" && event[1] == "finished")
            .count()
    };
    same!(count(world.events().await?), 1);
    let watch = world.keys().watch();
    world.raw::<()>(&["ZADD", &watch, "1", "j1"]).await?;
    look_after(world, AGE).await?;
    same!(count(world.events().await?), 1);
    Ok(())
}

/// Its dependents fail.
async fn failed_by_the_record_alone(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut next = world.job("j2")?;
    next.depends_on = vec!["j1".parse()?];
    world.put_jobs(&[world.job("j1")?, next]).await?;
    start(world, "j1").await?;
    write(world, "j1", &["status", "error", "error", "boom"]).await?;
    look_after(world, AGE).await?;
    check!(!world.broker.resolve_dependents().await?);
    same!(world.status("j2").await?, "error");
    same!(world.field("j1", "error").await?.as_deref(), Some("boom"));
    Ok(())
}

/// The job ends at its deadline, not before; its dependents end too.
async fn a_waiting_job_ends_with_its_time(world: &World) -> Outcome {
    let mut jobs = vec![world.job("j1")?, world.job("j2")?, world.job("j3")?];
    for (job, first) in jobs[1..].iter_mut().zip(["j1", "j2"]) {
        job.depends_on = vec![first.parse()?];
        job.timeout = 1;
    }
    jobs[1].prerequisite_timeout = Some(60);
    world.put_jobs(&jobs).await?;
    world.at(START + 59_999);
    world.broker.check_orphans().await?;
    same!(world.read("j2").await?.waiting, 1);
    look_after(world, 1).await?;
    let job = world.read("j2").await?;
    same!(
        (job.status.as_str(), job.error.as_deref()),
        ("error", Some("timeout: prerequisite j1 has not ended"))
    );
    check!(!world.broker.resolve_dependents().await?);
    same!(world.status("j3").await?, "error");
    // Its prerequisite ends after all.
    let claimed = world.take_one().await?;
    let before = world.record("j2").await?;
    world.finish(&claimed, "1").await?;
    same!(world.record("j2").await?, before);
    same!(world.waiting().await?.len(), 0);
    Ok(())
}

/// Its timeout is that of a run, which has not begun.
async fn a_waiting_job_has_time(world: &World) -> Outcome {
    let mut job = world.job("j2")?;
    (job.depends_on, job.timeout) = (vec!["j1".parse()?], 2);
    world.put_jobs(&[world.job("j1")?, job]).await?;
    for _ in 0..3 {
        same!(look_after(world, 30 * 86_400_000).await?.len(), 0);
        same!(world.read("j2").await?.waiting, 1);
        same!(looked_at(world, "j2").await?, Some(world.now() + 5_000));
    }
    let first = world.take_one().await?;
    world.finish(&first, "1").await?;
    same!(world.take_one().await?.job.timeout, 2);
    // A prerequisite that was deleted ends it all the same.
    crate::cases::dependencies::prerequisites::put_after(world, "j3", &["j2"]).await?;
    world.raw::<()>(&["DEL", &world.key("j2")]).await?;
    look_after(world, 5_000).await?;
    check!(!world.broker.resolve_dependents().await?);
    same!(world.status("j3").await?, "error");
    Ok(())
}

/// The client that ended the prerequisite did not notify its dependents.
async fn a_waiting_job_learns_what_no_script_told(world: &World) -> Outcome {
    let mut job = world.job("j2")?;
    job.depends_on = vec!["j1".parse()?];
    world.put_jobs(&[world.job("j1")?, job]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    write(world, "j1", &["status", "finished", "output", "1"]).await?;
    look_after(world, 4_999).await?;
    check!(!world.broker.resolve_dependents().await?);
    same!(world.waiting().await?.len(), 0);
    look_after(world, 1).await?;
    check!(!world.broker.resolve_dependents().await?);
    same!(world.waiting().await?, ["j2"]);
    Ok(())
}

/// Creates a job for `runner_1` that may fall back to the type, with that worker present. Returns the key of the
/// presence, and the queue.
async fn fallen(world: &World) -> Result<(String, String), Failure> {
    let mut job = world.job("j1")?;
    job.route.instance = Some("runner_1".parse()?);
    job.fallback = Some(Fallback::Type);
    let instance = "runner_1".parse()?;
    let key = world
        .keys()
        .presence_key(&job.route.script_type, &Group::default(), &instance);
    let presence = Registration {
        key: &key,
        value: r#"{"m":"1"}"#,
        mark: "1",
        over: None,
    };
    same!(world.broker.register(presence).await?, None);
    let queue = job.route.queue(world.keys());
    world.put_jobs(&[job]).await?;
    Ok((key, queue))
}

/// The fallback is not used before; then any worker of the type runs the job.
async fn a_fallback_is_taken_when_the_worker_is_gone(world: &World) -> Outcome {
    let (presence, queue) = fallen(world).await?;
    for _ in 0..3 {
        same!(look_after(world, 5_000).await?.len(), 0);
    }
    same!(world.list(&queue).await?, ["j1"]);
    world.raw::<()>(&["DEL", &presence]).await?;
    same!(look_after(world, 5_000).await?, ["j1"]);
    same!(world.list(&queue).await?.len(), 0);
    same!(looked_at(world, "j1").await?, None);
    same!(ids(&world.take(5).await?), ["j1"]);
    Ok(())
}

/// The old list has the id once, as the lock.
async fn a_fallback_leaves_the_old_list_as_it_is(world: &World) -> Outcome {
    let prefix = world.keys().legacy_work_prefix();
    let old = format!("{prefix}runner_1");
    set(world, "osis", &format!("dual {prefix}{{worker_id}} {AGE}")).await?;
    let (presence, _) = fallen(world).await?;
    world.raw::<()>(&["DEL", &presence]).await?;
    same!(look_after(world, 5_000).await?, ["j1"]);
    same!(world.list(&old).await?, ["j1"]);
    same!(world.field("j1", "mw_lock").await?.as_ref(), Some(&old));
    world.raw::<()>(&["LPOP", &old]).await?;
    check!(world.take(5).await?.is_empty());
    same!(look_after(world, AGE).await?.len(), 0);
    same!(look_after(world, AGE).await?, ["j1"]);
    Ok(())
}

/// Reclaim handles these jobs.
async fn a_job_under_a_lease_is_left_to_it(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "j1", &["timeout", "1"]).await?;
    same!(adopt(world, &["j1"]).await?, 1);
    world.push("j1").await?;
    let claimed = world.take_one().await?;
    let watch = world.keys().watch();
    world.raw::<()>(&["ZADD", &watch, "1", "j1"]).await?;
    for _ in 0..5 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(looked_at(world, "j1").await?, None);
    world.finish(&claimed, "42").await?;
    Ok(())
}

/// The job is on no list, and must be on none.
async fn a_job_that_waits_for_its_retry_is_left(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "j1", &[]).await?;
    same!(adopt(world, &["j1"]).await?, 1);
    pop(world).await?;
    let delayed = world.keys().delayed();
    world
        .raw::<()>(&["ZADD", &delayed, "9999999999999", "j1"])
        .await?;
    for _ in 0..3 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(looked_at(world, "j1").await?, None);
    same!(world.waiting().await?.len(), 0);
    Ok(())
}
