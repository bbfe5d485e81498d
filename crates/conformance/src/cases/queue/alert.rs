//! alert: failures in a row of a queue enqueue a job, once, and so does the success that ends them.

use std::time::Duration;

use meshwork_broker::Claimed;
use meshwork_model::job::NewJob;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::queue::{MAX_ALERT_AFTER, QueueSetting};
use meshwork_model::route::Priority;
use serde_json::{Value, json};

use crate::cases::harness::world::Got;
use crate::cases::{Failure as Fault, Outcome, World, cases, check, same};

cases![
    some_failures_in_a_row_raise_one_alert,
    the_next_success_is_reported_once,
    a_success_between_begins_anew,
    each_series_has_an_alert,
    only_dead_letters_count,
    lost_jobs_count,
    alert_jobs_do_not_count,
    a_repeated_report_counts_once,
    all_priorities_count_together,
    results_of_one_call_count_in_their_order,
    other_queues_do_not_count,
    jobs_claimed_before_do_not_count,
    a_slot_is_freed_beside_it,
    the_job_is_as_it_was_given,
    its_input_says_what_happened,
    a_long_error_is_cut_between_characters,
    another_alert_replaces_it,
    a_removed_alert_leaves_nothing,
    what_cannot_be_is_refused,
];

fn alert_job(world: &World) -> Got<NewJob> {
    let mut job = world.job("alert-x")?;
    job.route.script_type = "telegram".parse()?;
    "tell".clone_into(&mut job.script);
    Ok(job)
}

async fn set(world: &World, after: u32) -> Outcome {
    let job = alert_job(world)?;
    world.broker.set_alert(&world.queue(), after, &job).await?;
    Ok(())
}

async fn claimed(world: &World, id: &str) -> Got<Claimed> {
    world.put(&[id]).await?;
    world.take_one().await
}

async fn failed(world: &World, id: &str) -> Outcome {
    let claimed = claimed(world, id).await?;
    world.fail(&claimed, FailureKind::Script).await?;
    Ok(())
}

async fn finished(world: &World, id: &str) -> Outcome {
    let claimed = claimed(world, id).await?;
    world.finish(&claimed, "1").await?;
    Ok(())
}

/// Returns the ids of the alert jobs, the oldest first.
async fn raised(world: &World) -> Got<Vec<String>> {
    world.list(&world.queue_of("telegram")).await
}

async fn input(world: &World, id: &str) -> Got<Value> {
    let input = world.read(id).await?.input.unwrap_or_default();
    serde_json::from_slice(&input).map_err(Fault::new)
}

/// Returns the kinds of the alert jobs.
async fn kinds(world: &World) -> Got<Vec<String>> {
    let mut kinds = Vec::new();
    for id in raised(world).await? {
        let kind = &input(world, &id).await?["kind"];
        kinds.push(kind.as_str().unwrap_or_default().to_owned());
    }
    Ok(kinds)
}

async fn failures(world: &World) -> Got<Option<(u64, bool)>> {
    let alert = world.broker.alert(&world.queue()).await?;
    Ok(alert.map(|alert| (alert.failures, alert.alerted)))
}

async fn some_failures_in_a_row_raise_one_alert(world: &World) -> Outcome {
    set(world, 2).await?;
    failed(world, "a").await?;
    check!(raised(world).await?.is_empty());
    same!(failures(world).await?, Some((1, false)));
    failed(world, "b").await?;
    same!(raised(world).await?, ["alert-x.1"]);
    same!(failures(world).await?, Some((2, true)));
    failed(world, "c").await?;
    failed(world, "d").await?;
    same!(raised(world).await?, ["alert-x.1"]);
    same!(failures(world).await?, Some((4, true)));
    Ok(())
}

async fn the_next_success_is_reported_once(world: &World) -> Outcome {
    set(world, 1).await?;
    finished(world, "a").await?;
    check!(raised(world).await?.is_empty());
    failed(world, "b").await?;
    finished(world, "c").await?;
    finished(world, "d").await?;
    same!(kinds(world).await?, ["alert", "recovery"]);
    same!(raised(world).await?, ["alert-x.1", "alert-x.2"]);
    same!(failures(world).await?, Some((0, false)));
    Ok(())
}

async fn a_success_between_begins_anew(world: &World) -> Outcome {
    set(world, 2).await?;
    for id in ["a", "b", "c"] {
        failed(world, id).await?;
        finished(world, &format!("{id}-ok")).await?;
    }
    check!(raised(world).await?.is_empty());
    Ok(())
}

async fn each_series_has_an_alert(world: &World) -> Outcome {
    set(world, 1).await?;
    for id in ["a", "b"] {
        failed(world, id).await?;
        finished(world, &format!("{id}-ok")).await?;
    }
    let expected = ["alert", "recovery", "alert", "recovery"];
    same!(kinds(world).await?, expected);
    Ok(())
}

async fn only_dead_letters_count(world: &World) -> Outcome {
    set(world, 1).await?;
    let mut job = world.job("r")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let first = world.take_one().await?;
    world.fail(&first, FailureKind::Script).await?;
    same!(failures(world).await?, Some((0, false)));
    let second = world.take_one().await?;
    let snooze = Failure::new(FailureKind::Snoozed, "later");
    let pause = Duration::ZERO;
    world.broker.fail(&second, &snooze, b"", b"", pause).await?;
    same!(failures(world).await?, Some((0, false)));
    let third = world.take_one().await?;
    let discard = Failure::new(FailureKind::Discarded, "no need");
    world.broker.fail(&third, &discard, b"", b"", pause).await?;
    same!(world.status("r").await?, "error");
    same!(failures(world).await?, Some((0, false)));
    // A cancelled job neither counts nor ends a series.
    failed(world, "x").await?;
    let stopped = claimed(world, "s").await?;
    let job = world.read("s").await?;
    world.broker.cancel(&job, "stopped", false).await?;
    world.fail(&stopped, FailureKind::Script).await?;
    same!(failures(world).await?, Some((1, true)));
    Ok(())
}

async fn lost_jobs_count(world: &World) -> Outcome {
    set(world, 1).await?;
    world.put(&["a"]).await?;
    for _ in 0..4 {
        world.take_one().await?;
        world.lose_all().await?;
    }
    check!(raised(world).await?.is_empty());
    world.take_one().await?;
    world.lose_all().await?;
    same!(world.status("a").await?, "error");
    same!(raised(world).await?, ["alert-x.1"]);
    Ok(())
}

/// An alert job that fails in the queue that it is about would go on for ever.
async fn alert_jobs_do_not_count(world: &World) -> Outcome {
    let job = world.job("alert-x")?;
    world.broker.set_alert(&world.queue(), 1, &job).await?;
    failed(world, "a").await?;
    same!(world.waiting().await?, ["alert-x.1"]);
    let alert = world.take_one().await?;
    world.fail(&alert, FailureKind::Script).await?;
    check!(world.waiting().await?.is_empty());
    same!(failures(world).await?, Some((1, true)));
    finished(world, "b").await?;
    let recovery = world.take_one().await?;
    same!(recovery.job.id, "alert-x.2");
    world.finish(&recovery, "1").await?;
    check!(world.waiting().await?.is_empty());
    Ok(())
}

async fn a_repeated_report_counts_once(world: &World) -> Outcome {
    set(world, 2).await?;
    let job = claimed(world, "a").await?;
    for _ in 0..3 {
        world.fail(&job, FailureKind::Script).await?;
    }
    same!(failures(world).await?, Some((1, false)));
    Ok(())
}

async fn all_priorities_count_together(world: &World) -> Outcome {
    set(world, 2).await?;
    let mut queues = Vec::new();
    for (id, priority) in [("a", Priority::High), ("b", Priority::Low)] {
        let mut job = world.job(id)?;
        job.route.priority = priority;
        queues.push(job.route.queue(world.keys()));
        world.put_jobs(&[job]).await?;
    }
    let taken = world
        .claim(crate::cases::harness::world::WORKER, &queues, 2)
        .await?;
    for job in &taken.jobs {
        world.fail(job, FailureKind::Script).await?;
    }
    same!(raised(world).await?, ["alert-x.1"]);
    Ok(())
}

async fn results_of_one_call_count_in_their_order(world: &World) -> Outcome {
    set(world, 1).await?;
    failed(world, "x").await?;
    world.put(&["a", "b", "c"]).await?;
    let jobs = world.take(3).await?;
    let results: Vec<_> = jobs
        .iter()
        .map(|claimed| meshwork_broker::complete::Completion {
            claimed,
            output: b"1",
            stdout: b"",
            stderr: b"",
        })
        .collect();
    world.broker.complete_all(&results).await?;
    same!(kinds(world).await?, ["alert", "recovery"]);
    let recovery = input(world, "alert-x.2").await?;
    same!(recovery["job"], json!("a"));
    Ok(())
}

async fn other_queues_do_not_count(world: &World) -> Outcome {
    let other = world.queue_of("other");
    let job = alert_job(world)?;
    world.broker.set_alert(&other, 1, &job).await?;
    failed(world, "a").await?;
    check!(raised(world).await?.is_empty());
    same!(world.field("a", "mw_alert").await?, None);
    same!(world.field("a", "mw_with").await?, None);
    Ok(())
}

async fn jobs_claimed_before_do_not_count(world: &World) -> Outcome {
    let job = claimed(world, "a").await?;
    set(world, 1).await?;
    world.fail(&job, FailureKind::Script).await?;
    check!(raised(world).await?.is_empty());
    Ok(())
}

async fn a_slot_is_freed_beside_it(world: &World) -> Outcome {
    let limit = [QueueSetting::Concurrency(Some(1))];
    world.broker.configure(&world.queue(), &limit).await?;
    set(world, 1).await?;
    failed(world, "a").await?;
    let job = claimed(world, "b").await?;
    check!(world.field("b", "mw_slot").await?.is_some());
    world.fail(&job, FailureKind::Script).await?;
    same!(raised(world).await?, ["alert-x.1"]);
    same!(world.field("b", "mw_slot").await?, None);
    let settings = world.broker.settings_of(&world.queue()).await?;
    same!(
        (settings.concurrency, settings.alert_after),
        (Some(1), Some(1))
    );
    Ok(())
}

async fn the_job_is_as_it_was_given(world: &World) -> Outcome {
    let mut job = alert_job(world)?;
    job.retries = 3;
    job.timeout = 77;
    job.tags.insert("ops".parse().map_err(Fault::new)?);
    "me".clone_into(&mut job.caller_id);
    world.broker.set_alert(&world.queue(), 1, &job).await?;
    failed(world, "a").await?;
    let is = world.read("alert-x.1").await?;
    same!(
        (is.status.as_str(), is.retries, is.timeout),
        ("dispatched", 3, 77)
    );
    same!(
        (is.caller_id.as_str(), &is.script[..], &is.tags[..]),
        ("me", &b"tell"[..], &["ops".to_owned()][..])
    );
    let queues = [world.queue_of("telegram")];
    let taken = world
        .claim(crate::cases::harness::world::WORKER, &queues, 1)
        .await?;
    same!(taken.jobs[0].job.id, "alert-x.1");
    let events = world.events().await?;
    let found = |[job, what, _, note]: &[String; 4]| {
        job == "alert-x.1" && what == "enqueue" && note == "alert"
    };
    check!(events.iter().any(found));
    let stats = world.keys().queue_stats_key(&queues[0]);
    let created: Option<u64> = world.raw(&["HGET", &stats, "created"]).await?;
    same!(created, Some(1));
    Ok(())
}

async fn its_input_says_what_happened(world: &World) -> Outcome {
    set(world, 2).await?;
    world.pass(1_000);
    let first = claimed(world, "a").await?;
    world.fail(&first, FailureKind::Script).await?;
    let first_at = world.read("a").await?.updated_at.clone();
    world.pass(1_000);
    let second = claimed(world, "b").await?;
    let failure = Failure::new(FailureKind::Script, "no \"disk\"\n");
    let pause = Duration::ZERO;
    world
        .broker
        .fail(&second, &failure, b"", b"", pause)
        .await?;
    let at = world.read("b").await?.updated_at.clone();
    let queue = world.queue();
    same!(
        input(world, "alert-x.1").await?,
        json!({"kind": "alert", "queue": queue, "failures": 2, "job": "b", "at": at, "error": "no \"disk\"\n",
            "failed_job": "b", "failed_at": at, "first_failed_at": first_at})
    );
    world.pass(1_000);
    finished(world, "c").await?;
    let now = world.read("c").await?.updated_at.clone();
    same!(
        input(world, "alert-x.2").await?,
        json!({"kind": "recovery", "queue": queue, "failures": 2, "job": "c", "at": now, "error": "no \"disk\"\n",
            "failed_job": "b", "failed_at": at, "first_failed_at": first_at})
    );
    // The next series has its own first failure.
    failed(world, "d").await?;
    failed(world, "e").await?;
    let third = input(world, "alert-x.3").await?;
    let d = world.read("d").await?.updated_at;
    same!(
        (&third["failures"], &third["first_failed_at"]),
        (&json!(2), &json!(d))
    );
    Ok(())
}

async fn a_long_error_is_cut_between_characters(world: &World) -> Outcome {
    set(world, 1).await?;
    let job = claimed(world, "a").await?;
    let failure = Failure::new(FailureKind::Script, format!("x{}", "ä".repeat(3_000)));
    let pause = Duration::ZERO;
    world.broker.fail(&job, &failure, b"", b"", pause).await?;
    let error = input(world, "alert-x.1").await?["error"].clone();
    let error = error.as_str().unwrap_or_default();
    check!((4_000..=4_096).contains(&error.len()));
    check!(error.starts_with("xää") && error.ends_with('ä'));
    Ok(())
}

async fn another_alert_replaces_it(world: &World) -> Outcome {
    set(world, 2).await?;
    failed(world, "a").await?;
    let mut job = alert_job(world)?;
    job.id = "alert-y".parse()?;
    job.tags.insert("new".parse().map_err(Fault::new)?);
    world.broker.set_alert(&world.queue(), 2, &job).await?;
    same!(failures(world).await?, Some((0, false)));
    failed(world, "b").await?;
    check!(raised(world).await?.is_empty());
    failed(world, "c").await?;
    same!(raised(world).await?, ["alert-y.1"]);
    Ok(())
}

async fn a_removed_alert_leaves_nothing(world: &World) -> Outcome {
    let before = world.all().await?;
    set(world, 1).await?;
    check!(world.broker.remove_alert(&world.queue()).await?);
    world.unchanged(&before).await?;
    check!(!world.broker.remove_alert(&world.queue()).await?);
    same!(world.broker.alert(&world.queue()).await?, None);
    set(world, 1).await?;
    let job = claimed(world, "a").await?;
    world.broker.remove_alert(&world.queue()).await?;
    world.fail(&job, FailureKind::Script).await?;
    check!(raised(world).await?.is_empty());
    let key = world.keys().alert(&world.queue());
    let left: u32 = world.raw(&["EXISTS", &key]).await?;
    same!(left, 0);
    Ok(())
}

async fn what_cannot_be_is_refused(world: &World) -> Outcome {
    let before = world.all().await?;
    let (queue, mut job) = (world.queue(), alert_job(world)?);
    for after in [0, MAX_ALERT_AFTER + 1] {
        let set = world.broker.set_alert(&queue, after, &job).await;
        check!(set.is_err_and(|error| error.to_string().contains("give 1 to 1000")));
    }
    job.input = Some(Vec::new());
    let set = world.broker.set_alert(&queue, 1, &job).await;
    check!(set.is_err_and(|error| error.to_string().contains("says what happened")));
    world.unchanged(&before).await?;
    Ok(())
}
