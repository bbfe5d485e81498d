//! Counters of queues: their events, and events that are not counted.

use std::collections::BTreeMap;
use std::time::Duration;

use meshwork_model::outcome::{Failure as Wrong, FailureKind};
use meshwork_model::route::Priority;
use meshwork_model::schedule::policy::Overlap;

use crate::cases::dependencies::prerequisites::{after, put_after};
use crate::cases::harness::legacy_worker::{migrate, write};
use crate::cases::harness::options::{exchange, set};
use crate::cases::harness::world::{Got, START, WORKER};
use crate::cases::orphans::rescue::{AGE, foreign, rescuing, walk_and_look};
use crate::cases::schedules::put_schedule::{SLOT, every, read};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_life_in_figures,
    each_kind_of_error_is_counted,
    losses_and_poison,
    prerequisites_and_their_timeouts,
    each_list_has_its_own,
    lists_that_are_no_queues_have_none,
    what_changes_nothing_counts_nothing,
    the_last_claim_is_dated,
    slots_by_what_became_of_them,
    a_clock_set_back_takes_nothing_off,
    a_key_like_figures_ends_no_call,
    a_foreign_job_counts_at_its_first_claim,
    a_foreign_job_that_does_not_run_counts_once,
    a_foreign_job_that_waits_counts_once,
    a_foreign_job_of_a_migrating_type_counts_once,
    a_foreign_job_counts_when_it_is_watched_for_rescue,
    a_native_job_is_no_foreign_one,
];

/// The field that is no counter: the time of the last claim.
const CLAIMED_AT: &str = "claimed_at";

async fn of(world: &World, queue: &str) -> Got<BTreeMap<String, u64>> {
    world
        .raw(&["HGETALL", &world.keys().queue_stats_key(queue)])
        .await
}

/// Compares the counters of the queue of [`World::job`] with a text such as `created 1, started 1`.
async fn figures(world: &World, should: &str) -> Outcome {
    let mut is = of(world, &world.queue()).await?;
    is.remove(CLAIMED_AT);
    let is: Vec<_> = is.iter().map(|(name, n)| format!("{name} {n}")).collect();
    same!(is.join(", "), should);
    Ok(())
}

/// Deletes the counters.
async fn begin(world: &World) -> Outcome {
    world.raw(&["FLUSHDB"]).await
}

/// The job is followed from its creation to its retry.
async fn a_life_in_figures(world: &World) -> Outcome {
    let mut job = world.job("a")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let run = world.take_one().await?;
    world.pass(100);
    world.broker.release(&run).await?;
    let run = world.take_one().await?;
    world.pass(20);
    world.fail(&run, FailureKind::Script).await?;
    figures(
        world,
        "created 1, released 1, retried 1, run_ms 20, started 2",
    )
    .await?;
    let run = world.take_one().await?;
    world.pass(3);
    world.finish(&run, "42").await?;
    world.broker.retry(&world.read("a").await?).await?;
    figures(
        world,
        "created 1, finished 1, released 1, requeued 1, retried 1, run_ms 23, started 3",
    )
    .await
}

/// The kind of the error is the counter's name; a cancelled job is no dead letter.
async fn each_kind_of_error_is_counted(world: &World) -> Outcome {
    let kinds = [
        (
            FailureKind::Script,
            "created 1, dead 1, error:script 1, failed 1, run_ms 0, started 1",
        ),
        (
            FailureKind::Timeout,
            "created 1, dead 1, error:timeout 1, failed 1, run_ms 0, started 1",
        ),
        (
            FailureKind::Permanent,
            "created 1, dead 1, error:permanent 1, failed 1, run_ms 0, started 1",
        ),
        (
            FailureKind::Stopped,
            "created 1, error:stopped 1, failed 1, run_ms 0, started 1",
        ),
    ];
    for (kind, should) in kinds {
        let run = world.started("a").await?;
        world.fail(&run, kind).await?;
        figures(world, should).await?;
        begin(world).await?;
    }
    world.put(&["a"]).await?;
    world
        .broker
        .cancel(&world.read("a").await?, "stopped", false)
        .await?;
    figures(world, "created 1, error:stopped 1, failed 1").await?;
    begin(world).await?;
    let run = world.started("a").await?;
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    world.broker.release(&run).await?;
    let figures = of(world, &world.queue()).await?;
    same!(figures.get("error:queue"), Some(&1));
    Ok(())
}

/// The jobs belonged to workers that died.
async fn losses_and_poison(world: &World) -> Outcome {
    world.started("a").await?;
    for _ in 0..4 {
        world.lose_all().await?;
        world.take_one().await?;
    }
    figures(world, "created 1, lost 4, started 5").await?;
    world.lose_all().await?;
    figures(
        world,
        "created 1, dead 1, error:lost 1, failed 1, lost 5, started 5",
    )
    .await
}

/// The jobs end without a run.
async fn prerequisites_and_their_timeouts(world: &World) -> Outcome {
    let mut first = world.job("first")?;
    first.route.script_type = "sal".parse()?;
    world.put_jobs(&[first]).await?;
    put_after(world, "a", &["first"]).await?;
    world
        .broker
        .cancel(&world.read("first").await?, "stopped", false)
        .await?;
    figures(world, "created 1, error:prerequisite 1, failed 1").await?;
    put_after(world, "b", &["first"]).await?;
    figures(world, "created 2, error:prerequisite 2, failed 2").await?;
    begin(world).await?;
    let mut first = world.job("first")?;
    first.route.script_type = "sal".parse()?;
    world.put_jobs(&[first]).await?;
    let mut bounded = after(world, "a", &["first"])?;
    bounded.prerequisite_timeout = Some(1_800);
    world.put_jobs(&[bounded]).await?;
    world.pass(1_800_000);
    world.broker.check_orphans().await?;
    figures(world, "created 1, error:timeout 1, failed 1").await
}

/// Each priority has its own list.
async fn each_list_has_its_own(world: &World) -> Outcome {
    let high = format!("{}:prio:0", world.queue());
    let mut job = world.job("a")?;
    job.route.priority = Priority::High;
    world
        .put_jobs(&[job, world.job("b")?, world.job("c")?])
        .await?;
    let run = world
        .claim(WORKER, std::slice::from_ref(&high), 1)
        .await?
        .jobs;
    world.finish(&run[0], "42").await?;
    figures(world, "created 2").await?;
    let of_high = of(world, &high).await?;
    same!(of_high.get("finished"), Some(&1));
    same!(of_high.get("started"), Some(&1));
    Ok(())
}

/// Their number is not limited.
async fn lists_that_are_no_queues_have_none(world: &World) -> Outcome {
    let list = format!("{}elsewhere", world.keys().job_prefix());
    let fields = [
        ("status", "dispatched"),
        ("mw_queue", list.as_str()),
        ("mw_attempt", "1"),
    ];
    world.put_foreign("a", &fields).await?;
    world
        .broker
        .cancel(&world.read("a").await?, "stopped", true)
        .await?;
    check!(of(world, &list).await?.is_empty());
    check!(!world.all().await?.contains("queue:stats"));
    Ok(())
}

/// The report is stale, or repeated.
async fn what_changes_nothing_counts_nothing(world: &World) -> Outcome {
    let run = world.started("a").await?;
    world.finish(&run, "42").await?;
    let before = of(world, &world.queue()).await?;
    world.finish(&run, "42").await?;
    world.fail(&run, FailureKind::Script).await?;
    world.broker.release(&run).await?;
    world.broker.reclaim().await?;
    world.broker.enqueue(&[world.job("a")?]).await?;
    same!(of(world, &world.queue()).await?, before);
    Ok(())
}

/// Each call that claims a job sets the time of its queue.
async fn the_last_claim_is_dated(world: &World) -> Outcome {
    let dated = async |queue: &str| Got::Ok(of(world, queue).await?.remove(CLAIMED_AT));
    let other = world.queue_of("sal");
    let mut job = world.job("other")?;
    job.route.script_type = "sal".parse()?;
    world
        .put_jobs(&[world.job("a")?, world.job("b")?, job])
        .await?;
    same!(dated(&world.queue()).await?, None);
    let run = world.take_one().await?;
    same!(dated(&world.queue()).await?, Some(START));
    same!(dated(&other).await?, None);
    world.pass(7);
    let queues = [world.queue(), other.clone()];
    same!(world.claim(WORKER, &queues, 2).await?.jobs.len(), 2);
    same!(dated(&world.queue()).await?, Some(START + 7));
    same!(dated(&other).await?, Some(START + 7));
    // A call that ends a job and claims none is no claim.
    world.pass(7);
    let said = exchange(world, &[&run], 1).await?;
    check!(said.taken.jobs.is_empty());
    same!(dated(&world.queue()).await?, Some(START + 7));
    Ok(())
}

/// The counters are at the queue of the jobs, with the delay of each slot. Slots that were run by hand, or that exist
/// already, do not count.
async fn slots_by_what_became_of_them(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    crate::cases::schedules::put_schedule::put(world, &schedule).await?;
    world.at(SLOT + 7);
    same!(world.broker.fire_schedules().await?.stored, 1);
    figures(world, "created 1, slots:ran 1, slots_late_ms 7").await?;
    world.at(SLOT + 10_003);
    same!(world.broker.fire_schedules().await?.skipped, 1);
    figures(
        world,
        "created 1, slots:ran 1, slots:skipped 1, slots_late_ms 7",
    )
    .await?;
    schedule.overlap = Overlap::Allow;
    world.broker.put_schedule(&schedule, true).await?;
    world
        .broker
        .run_schedule(&read(world).await?, &schedule, "hand")
        .await?;
    let field = format!("queue:{}", world.queue());
    let config = world.keys().config();
    world
        .raw::<()>(&["HSET", &config, &field, "payload=1"])
        .await?;
    world.at(SLOT + 20_000);
    same!(world.broker.fire_schedules().await?.stored, 0);
    let there = read(world).await?;
    same!((there.refused, there.refused_by()), (1, None));
    check!(there.refusal.is_some_and(|why| why.starts_with("large ")));
    world.raw::<()>(&["DEL", &config]).await?;
    world.broker.set_max_length(None, Some(0)).await?;
    world.at(SLOT + 30_000);
    same!(world.broker.fire_schedules().await?.troubles.len(), 1);
    let expected = "created 2, slots:ran 1, slots:refused 1, slots:skipped 1, slots_late_ms 7";
    figures(world, expected).await?;
    same!(read(world).await?.refused, 1);
    // The delayed slot comes late; the first one exists when it is decided again.
    world.broker.set_max_length(None, None).await?;
    world.at(SLOT + 35_000);
    same!(world.broker.fire_schedules().await?.stored, 1);
    let expected = "created 3, slots:ran 2, slots:refused 1, slots:skipped 1, slots_late_ms 5007";
    figures(world, expected).await?;
    let key = world.keys().schedule(&"s".parse()?);
    let before = (SLOT + 20_000).to_string();
    world
        .raw::<()>(&["HSET", &key, "position", &before])
        .await?;
    world
        .raw::<()>(&["ZADD", &world.keys().schedules(), &before, "s"])
        .await?;
    same!(world.broker.fire_schedules().await?.due, 1);
    figures(world, expected).await
}

/// A run with an end before its beginning has a duration of zero.
async fn a_clock_set_back_takes_nothing_off(world: &World) -> Outcome {
    let run = world.started("a").await?;
    world.pass(5);
    world.finish(&run, "42").await?;
    let run = world.started("b").await?;
    world.at(START - 1_000);
    world.finish(&run, "42").await?;
    figures(world, "created 2, finished 2, run_ms 5, started 2").await
}

/// Counters are only information.
async fn a_key_like_figures_ends_no_call(world: &World) -> Outcome {
    let key = world.keys().queue_stats_key(&world.queue());
    world.raw::<()>(&["SET", &key, "x"]).await?;
    let mut job = world.job("a")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let run = world.take_one().await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    world
        .broker
        .fail(&run, &failure, b"", b"", Duration::ZERO)
        .await?;
    let run = world.take_one().await?;
    world.finish(&run, "42").await?;
    same!(world.status("a").await?, "finished");
    let is: String = world.raw(&["GET", &key]).await?;
    if is != "x" {
        return Err(Failure::new("the key was written to"));
    }
    Ok(())
}

/// Neither a release, a lost worker nor a retry by hand counts it again.
async fn a_foreign_job_counts_at_its_first_claim(world: &World) -> Outcome {
    world.put_foreign("j1", &[]).await?;
    figures(world, "").await?;
    let run = world.take_one().await?;
    figures(world, "created:foreign 1, started 1").await?;
    world.broker.release(&run).await?;
    world.take_one().await?;
    world.lose_all().await?;
    let run = world.take_one().await?;
    world.finish(&run, "42").await?;
    world.broker.retry(&world.read("j1").await?).await?;
    world.take_one().await?;
    figures(
        world,
        "created:foreign 1, finished 1, lost 1, released 1, requeued 1, run_ms 0, started 4",
    )
    .await
}

/// Its record cannot be read, or it can never run.
async fn a_foreign_job_that_does_not_run_counts_once(world: &World) -> Outcome {
    world.put_foreign("j1", &[("status", "paused")]).await?;
    check!(world.take(5).await?.is_empty());
    let counted = "created:foreign 1, dead 1, error:unreadable 1, failed 1";
    figures(world, counted).await?;
    begin(world).await?;
    let itself = [("prerequisites", r#"["j2"]"#)];
    world.put_foreign("j2", &itself).await?;
    check!(world.take(5).await?.is_empty());
    let counted = "created:foreign 1, error:prerequisite 1, failed 1";
    figures(world, counted).await?;
    world.broker.retry(&world.read("j2").await?).await?;
    check!(world.take(5).await?.is_empty());
    let counted = "created:foreign 1, error:prerequisite 2, failed 2, requeued 1";
    figures(world, counted).await?;
    begin(world).await?;
    let odd = [("prerequisites", "{]")];
    world.put_foreign("j3", &odd).await?;
    check!(world.take(5).await?.is_empty());
    let counted = "created:foreign 1, dead 1, error:unreadable 1, failed 1";
    figures(world, counted).await
}

/// It waits for another job, or for a foreign worker that may run it.
async fn a_foreign_job_that_waits_counts_once(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    world
        .put_foreign("j1", &[("prerequisites", r#"["first"]"#)])
        .await?;
    let first = world.take_one().await?;
    check!(world.take(5).await?.is_empty());
    figures(world, "created 1, created:foreign 1, started 1").await?;
    world.finish(&first, "42").await?;
    world.take_one().await?;
    figures(
        world,
        "created 1, created:foreign 1, finished 1, run_ms 0, started 2",
    )
    .await?;
    begin(world).await?;
    world.put_foreign("j2", &[("status", "started")]).await?;
    check!(world.take(5).await?.is_empty());
    figures(world, "created:foreign 1").await?;
    write(world, "j2", &["status", "dispatched"]).await?;
    world.push("j2").await?;
    world.take_one().await?;
    figures(world, "created:foreign 1, started 1").await
}

/// The claim waits for the second push of its client.
async fn a_foreign_job_of_a_migrating_type_counts_once(world: &World) -> Outcome {
    migrate(world, "canonical").await?;
    world.put_foreign("j1", &[("script_type", "OSIS")]).await?;
    check!(world.take(5).await?.is_empty());
    figures(world, "created:foreign 1").await?;
    world.pass(1_000);
    world.broker.promote().await?;
    world.take_one().await?;
    figures(world, "created:foreign 1, started 1").await
}

/// Its client was killed before the push. A job that is only listed as stale does not count: it may be that of other
/// workers.
async fn a_foreign_job_counts_when_it_is_watched_for_rescue(world: &World) -> Outcome {
    foreign(world, "away", &[]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for _ in 0..20 {
        walk_and_look(world, AGE).await?;
    }
    figures(world, "").await?;
    let broker = rescuing(world, 5);
    let (mut pushed, mut rounds) = (Vec::new(), 0);
    while pushed.is_empty() && rounds < 30 {
        while broker.scan_orphans().await?.next != 0 {}
        pushed.extend(broker.check_orphans().await?.pushed);
        world.pass(5_000);
        rounds += 1;
    }
    same!(pushed, ["away"]);
    figures(world, "created:foreign 1").await?;
    world.take_one().await?;
    figures(world, "created:foreign 1, started 1").await
}

/// Settings send its claim on the slow path; another job is watched for rescue.
async fn a_native_job_is_no_foreign_one(world: &World) -> Outcome {
    set(world, "concurrency=5").await?;
    world.started("a").await?;
    figures(world, "created 1, started 1").await?;
    world.put(&["b"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    while rescuing(world, 5).scan_orphans().await?.next != 0 {}
    check!(
        crate::cases::harness::legacy_worker::looked_at(world, "b")
            .await?
            .is_some()
    );
    figures(world, "created 2, started 1").await
}
