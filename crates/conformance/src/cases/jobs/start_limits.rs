//! Start timeouts: a job that no worker began in time never begins.

use meshwork_broker::{Deleted, LeaderTask, Retried};
use meshwork_model::job::{NewJob, OnFailure, When};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::{Got, START, WORKER};
use crate::cases::maintenance::control::ask;
use crate::cases::store::restore;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    it_begins_before_its_time_is_over,
    none_begins_after_its_time,
    a_task_of_maintenance_ends_it,
    it_counts_from_the_due_time,
    a_past_due_time_counts_from_the_submission,
    it_includes_waits_for_others,
    a_job_that_has_begun_has_no_limit,
    a_job_that_lost_a_foreign_worker_has_begun,
    a_retry_has_no_limit,
    a_cancelled_or_deleted_job_leaves_nothing,
    its_dependents_learn_of_it,
    each_call_is_bounded,
    an_import_lists_it,
    a_key_of_another_kind_is_passed_over,
];

/// The start timeout, in milliseconds.
const MS: u64 = 2_000;

const ERROR: &str = "timeout: no worker began it within 2 s";

fn limited(world: &World, id: &str) -> Got<NewJob> {
    let mut job = world.job(id)?;
    job.start_timeout_ms = Some(MS);
    Ok(job)
}

/// Returns the ids of a claim.
async fn taken(world: &World, want: usize) -> Got<Vec<String>> {
    let jobs = world.take(want).await?;
    Ok(jobs.iter().map(|claimed| claimed.job.id.clone()).collect())
}

async fn put(world: &World, ids: &[&str]) -> Got<()> {
    let jobs: Got<Vec<_>> = ids.iter().map(|id| limited(world, id)).collect();
    world.put_jobs(&jobs?).await
}

/// Returns the jobs that are listed by their time.
async fn listed(world: &World) -> Got<Vec<String>> {
    let set = world.named("STARTS")?;
    world.raw(&["ZRANGE", &set, "0", "-1", "WITHSCORES"]).await
}

async fn is_late(world: &World, id: &str) -> Outcome {
    let job = world.read(id).await?;
    same!(
        (job.status.as_str(), job.error.as_deref()),
        ("error", Some(ERROR))
    );
    same!((job.dead, job.attempt), (None, 0));
    Ok(())
}

async fn counted(world: &World, name: &str) -> Got<Option<u64>> {
    let stats = world.keys().queue_stats_key(&world.queue());
    world.raw(&["HGET", &stats, name]).await
}

async fn it_begins_before_its_time_is_over(world: &World) -> Outcome {
    put(world, &["a"]).await?;
    let by = START + MS;
    same!(
        world.field("a", "mw_start_by").await?,
        Some(format!("{by} {MS}"))
    );
    same!(world.read("a").await?.start_by_ms, Some(by));
    same!(listed(world).await?, ["a".to_owned(), by.to_string()]);
    world.pass(MS - 1);
    same!(world.broker.check_orphans().await?.looked, 0);
    same!(taken(world, 1).await?, ["a"]);
    same!(world.field("a", "mw_start_by").await?, None);
    check!(listed(world).await?.is_empty());
    Ok(())
}

/// The claim decides, also where no task has looked at the job.
async fn none_begins_after_its_time(world: &World) -> Outcome {
    put(world, &["a", "b"]).await?;
    world.put(&["c"]).await?;
    world.pass(MS);
    same!(taken(world, 3).await?, ["c"]);
    for id in ["a", "b"] {
        is_late(world, id).await?;
    }
    same!(counted(world, "error:timeout").await?, Some(2));
    check!(world.waiting().await?.is_empty());
    same!(world.broker.check_orphans().await?.looked, 2);
    check!(listed(world).await?.is_empty());
    Ok(())
}

async fn a_task_of_maintenance_ends_it(world: &World) -> Outcome {
    put(world, &["a"]).await?;
    world.put(&["b"]).await?;
    let tasks = async || -> Got<Vec<LeaderTask>> {
        world.pass(MS); // another leadership
        Ok(ask(world, WORKER, &[]).await?.tasks)
    };
    check!(tasks().await?.contains(&LeaderTask::CheckOrphans));
    same!(world.broker.check_orphans().await?.looked, 1);
    is_late(world, "a").await?;
    same!(counted(world, "error:timeout").await?, Some(1));
    same!(world.waiting().await?, ["b"]);
    check!(listed(world).await?.is_empty());
    same!(world.broker.check_orphans().await?.looked, 0);
    Ok(())
}

async fn it_counts_from_the_due_time(world: &World) -> Outcome {
    let mut job = limited(world, "a")?;
    job.when = Some(When::In(5_000));
    world.put_jobs(&[job]).await?;
    world.pass(5_000 + MS - 1);
    world.broker.check_orphans().await?;
    world.broker.promote().await?;
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

async fn a_past_due_time_counts_from_the_submission(world: &World) -> Outcome {
    let mut job = limited(world, "a")?;
    job.when = Some(When::At(START - 9 * MS));
    world.put_jobs(&[job]).await?;
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

async fn it_includes_waits_for_others(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = limited(world, "a")?;
    job.depends_on = vec!["first".parse()?];
    world.put_jobs(&[job]).await?;
    world.pass(MS);
    world.broker.check_orphans().await?;
    is_late(world, "a").await?;
    let first = world.take_one().await?;
    world.finish(&first, "1").await?;
    check!(world.waiting().await?.is_empty());
    is_late(world, "a").await?;
    Ok(())
}

async fn a_job_that_has_begun_has_no_limit(world: &World) -> Outcome {
    let mut job = limited(world, "a")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world.broker.release(&claimed).await?;
    world.pass(MS);
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    world.pass(60_000);
    world.broker.check_orphans().await?;
    world.broker.promote().await?;
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

/// Such a worker writes only the record.
async fn a_job_that_lost_a_foreign_worker_has_begun(world: &World) -> Outcome {
    put(world, &["a", "b"]).await?;
    let key = world.key("a");
    world
        .raw::<()>(&["HSET", &key, "status", "started"])
        .await?;
    world.pass(MS);
    world.broker.check_orphans().await?;
    same!(world.status("a").await?, "started");
    world
        .raw::<()>(&["HSET", &key, "status", "dispatched", "mw_lost", "1"])
        .await?;
    same!(taken(world, 2).await?, ["a"]);
    is_late(world, "b").await?;
    Ok(())
}

async fn a_retry_has_no_limit(world: &World) -> Outcome {
    put(world, &["a"]).await?;
    world.pass(MS);
    world.broker.check_orphans().await?;
    same!(
        world.broker.retry(&world.read("a").await?).await?,
        Retried::Queued
    );
    world.pass(MS);
    world.broker.check_orphans().await?;
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

async fn a_cancelled_or_deleted_job_leaves_nothing(world: &World) -> Outcome {
    put(world, &["a", "b"]).await?;
    world
        .broker
        .cancel(&world.read("a").await?, "x", false)
        .await?;
    same!(
        world.broker.delete(&world.read("b").await?).await?,
        Deleted::Deleted
    );
    same!(
        listed(world).await?,
        ["a".to_owned(), (START + MS).to_string()]
    );
    world.pass(MS);
    world.broker.check_orphans().await?;
    same!(world.read("a").await?.error.as_deref(), Some("x"));
    same!(world.raw::<u8>(&["EXISTS", &world.key("b")]).await?, 0);
    check!(listed(world).await?.is_empty());
    Ok(())
}

async fn its_dependents_learn_of_it(world: &World) -> Outcome {
    put(world, &["a", "b"]).await?;
    for (id, of, rule) in [("c", "a", OnFailure::Fail), ("d", "b", OnFailure::Continue)] {
        let mut job = world.job(id)?;
        job.depends_on = vec![of.parse()?];
        job.on_failure = rule;
        world.put_jobs(&[job]).await?;
    }
    world.pass(MS);
    world.broker.check_orphans().await?;
    world.broker.resolve_dependents().await?;
    same!(world.status("c").await?, "error");
    same!(world.waiting().await?, ["d"]);
    Ok(())
}

async fn each_call_is_bounded(world: &World) -> Outcome {
    let ids: Vec<_> = (0..250).map(|n| format!("j{n}")).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    put(world, &ids).await?;
    world.pass(MS);
    let first = world.broker.check_orphans().await?;
    same!((first.looked, first.more), (200, true));
    same!(world.broker.check_orphans().await?.looked, 50);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

async fn an_import_lists_it(world: &World) -> Outcome {
    let by = START + MS;
    let limit = format!("{by} {MS}");
    let more = [("mw_with", "1"), ("mw_start_by", &*limit)];
    let job = |id: &str, status: &str| restore::job(id, status, &more);
    let jobs = [job("a", "dispatched"), job("b", "error")];
    world.broker.import_jobs(&jobs).await?;
    same!(listed(world).await?, ["a".to_owned(), by.to_string()]);
    Ok(())
}

async fn a_key_of_another_kind_is_passed_over(world: &World) -> Outcome {
    world
        .raw::<()>(&["SET", &world.named("STARTS")?, "x"])
        .await?;
    put(world, &["a", "b"]).await?;
    same!(world.broker.check_orphans().await?.looked, 0);
    same!(taken(world, 1).await?, ["a"]);
    world.pass(MS);
    check!(taken(world, 1).await?.is_empty());
    is_late(world, "b").await?;
    Ok(())
}
