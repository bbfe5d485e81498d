//! All keys and values after each verb: data that other clients read, and Meshwork's additions.

use std::time::Duration;

use meshwork_broker::{Claimed, Reclaimed};
use meshwork_model::job::NewJob;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::failure::same_text;
use crate::cases::harness::world::{LEASE_MS, NOTED, START, WORKER};
use crate::cases::{Failure, Outcome, World, cases, same};

cases![
    after_enqueue,
    after_enqueue_with_everything,
    after_claim,
    after_renew,
    after_finish,
    after_fail_with_a_retry_left,
    after_fail_without,
    after_release,
    after_reclaim,
    after_the_last_reclaim,
    after_cancel_of_a_waiting_job,
    after_cancel_of_a_running_job,
    after_retry,
    after_delete,
    after_leave,
];

/// Fields that a plain job has during its whole life.
const PLAIN: [&str; 9] = [
    "caller_id =",
    "concurrent = true",
    "context_id =",
    "created_at = 2023-11-14T22:13:20.123Z",
    "id = j1",
    "retries = 0",
    "script = j1",
    "script_type = osis",
    "timeout = 1800",
];

/// Returns a hash `j1` of the plain fields and of `others`, which replace plain ones.
fn record(others: &[&str]) -> String {
    let name = |line: &str| line.split(' ').next().map(str::to_owned);
    let replaced = |line: &&&str| others.iter().any(|other| name(other) == name(line));
    let kept = PLAIN.iter().filter(|line| !replaced(line));
    let mut lines: Vec<_> = kept.chain(["worker_id ="].iter()).chain(others).collect();
    lines.sort();
    let lines: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("~:job:j1 hash\n{lines}")
}

/// The field of attempts of `j1` that failed or were lost, each by its start and end in seconds after the first.
fn attempts(times: &[(u64, u64)], outcome: &str, error: &str) -> String {
    let one = |(from, to): &(u64, u64)| {
        let [from, to] = [from, to].map(|s| 1_700_000_000_123 + s * 1000);
        format!(
            r#"{{"number":1,"started":{from},"ended":{to},"worker":"w1-a","outcome":"{outcome}","error":"{error}"}}"#
        )
    };
    let lines: Vec<_> = times.iter().map(one).collect();
    // As `String::escape_default` prints it.
    let field = lines.join("\n").escape_default().to_string();
    format!("mw_failed_attempts = {field}")
}

/// `j1` in its queue.
const QUEUED: &str = "~:q:work:type:osis list\n  j1\n";

/// Lease of `j1`, claimed at the start.
const LEASED: &str = "~:q:lease zset\n  j1 = 1700000010123\n";

/// Returns the events of `j1`.
fn events(events: &[&str]) -> String {
    let lines = events
        .iter()
        .map(|event| format!("  job j1 event {event}\n"));
    format!("~:q:events stream\n{}", lines.collect::<String>())
}

/// Returns the counters of its queue for a text such as `created 1, started 1`. A claim was at the start.
fn figures(figures: &str) -> String {
    let claimed_at = figures.contains("started").then_some(START);
    figures_since(claimed_at, figures)
}

/// Returns the same for a queue whose last claim was at another time.
fn figures_since(claimed_at: Option<u64>, figures: &str) -> String {
    let lines = figures
        .split(", ")
        .filter_map(|figure| figure.split_once(' '));
    let lines = lines.map(|(name, n)| format!("  {name} = {n}\n"));
    let claimed_at = claimed_at.map(|at| format!("  claimed_at = {at}\n"));
    format!(
        "~:meta:queue:stats:type:osis hash\n{}{}",
        claimed_at.unwrap_or_default(),
        lines.collect::<String>()
    )
}

/// Events at the beginning of a plain job.
const ENQUEUED: &str = "enqueue by  note osis";
const CLAIMED: &str = "claim by w1-a note";

/// Returns all data without the names of queues.
fn without_queues(all: &str) -> String {
    let mut key = "";
    let lines = all.lines().filter(|line| {
        if !line.starts_with(' ') {
            key = line;
        }
        key != NOTED
    });
    lines.map(|line| format!("{line}\n")).collect()
}

async fn is(world: &World, parts: &[&str]) -> Outcome {
    same_text(&without_queues(&world.all().await?), &parts.concat())
}

async fn running(world: &World, change: fn(&mut NewJob)) -> Result<Claimed, Failure> {
    let mut job = world.job("j1")?;
    change(&mut job);
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world.pass(1_000);
    Ok(claimed)
}

/// The record has Hero's fields, the script's type, and whether a reply is wanted.
async fn after_enqueue(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let record = record(&[
        "mw_reply = 0",
        "status = dispatched",
        "updated_at = 2023-11-14T22:13:20.123Z",
    ]);
    let figures = figures("created 1");
    is(world, &[&record, &figures, &events(&[ENQUEUED]), QUEUED]).await
}

/// Each property of a job has its field; the environment is one JSON object.
async fn after_enqueue_with_everything(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.script = "print(1)\n".to_owned();
    job.input = Some(vec![0, b'a', 255]);
    job.caller_id = "alice".to_owned();
    job.context_id = "home".to_owned();
    job.timeout = 30;
    job.retries = 2;
    job.concurrent = false;
    job.reply = true;
    job.env_vars.insert("B".to_owned(), "\"q\"".to_owned());
    job.env_vars.insert("A".to_owned(), "1".to_owned());
    job.route.script_type = "python".parse()?;
    job.route.group = Some("io".parse()?);
    job.route.instance = Some("3".parse()?);
    world.put_jobs(&[job]).await?;
    let expected = r#"~:job:j1 hash
  caller_id = alice
  concurrent = false
  context_id = home
  created_at = 2023-11-14T22:13:20.123Z
  env_vars = {\"A\":\"1\",\"B\":\"\\\"q\\\"\"}
  id = j1
  mw_group = io
  mw_input = \x00a\xff
  mw_instance = 3
  mw_reply = 1
  retries = 2
  script = print(1)\n
  script_type = python
  status = dispatched
  timeout = 30
  updated_at = 2023-11-14T22:13:20.123Z
  worker_id = 3
~:meta:queue:stats:type:python:group:io:inst:3 hash
  created = 1
~:q:events stream
  job j1 event enqueue by  note python
~:q:work:type:python:group:io:inst:3 list
  j1
"#;
    is(world, &[expected]).await
}

/// The record has the start, the worker, the queue, the number of the run, and the token.
async fn after_claim(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    world.pass(1_000);
    world.take_one().await?;
    let record = record(&[
        "mw_attempt = 1",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 0",
        "mw_token = t1",
        "mw_started = 1700000001123",
        "mw_worker = w1-a",
        "status = started",
        "updated_at = 2023-11-14T22:13:21.123Z",
    ]);
    let lease = "~:q:lease zset\n  j1 = 1700000011123\n";
    let figures = figures_since(Some(START + 1_000), "created 1, started 1");
    is(
        world,
        &[&record, &figures, &events(&[ENQUEUED, CLAIMED]), lease],
    )
    .await
}

/// A lease and a registration, which both expire one lease from now.
async fn after_renew(world: &World) -> Outcome {
    let claimed = running(world, |_| {}).await?;
    same!(world.renew(WORKER, &[claimed]).await?.len(), 0);
    let record = record(&[
        "mw_attempt = 1",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 0",
        "mw_token = t1",
        "mw_started = 1700000000123",
        "mw_worker = w1-a",
        "status = started",
        "updated_at = 2023-11-14T22:13:20.123Z",
    ]);
    let feeds = "~:q:feeds zset\n  w1-a ~:q:work:type:osis = 1700000016123\n";
    let lease = "~:q:lease zset\n  j1 = 1700000011123\n";
    let figures = figures("created 1, started 1");
    is(
        world,
        &[
            &record,
            &figures,
            &events(&[ENQUEUED, CLAIMED]),
            feeds,
            lease,
        ],
    )
    .await
}

/// Status and output have Hero's format; the token stays to recognise a repeated report.
async fn after_finish(world: &World) -> Outcome {
    let claimed = running(world, |job| job.reply = true).await?;
    world
        .broker
        .complete(&claimed, b"42", b"out", b"err")
        .await?;
    let record = record(&[
        "mw_attempt = 1",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 1",
        "mw_stderr = err",
        "mw_stdout = out",
        "mw_token = t1",
        "mw_started = 1700000000123",
        "mw_worker = w1-a",
        "output = 42",
        "status = finished",
        "updated_at = 2023-11-14T22:13:21.123Z",
    ]);
    let ended = "~:q:ended zset\n  j1 = 1700000001123\n";
    let events = events(&[ENQUEUED, CLAIMED, "finished by w1-a note"]);
    let reply = "~:q:reply:j1 list for 60 min\n  42\n";
    let figures = figures("created 1, finished 1, run_ms 1000, started 1");
    is(world, &[&record, &figures, ended, &events, reply]).await
}

/// The job waits again, with the error, and without a token.
async fn after_fail_with_a_retry_left(world: &World) -> Outcome {
    let claimed = running(world, |job| job.retries = 1).await?;
    let mut failure = meshwork_model::outcome::Failure::new(FailureKind::Script, "boom");
    failure.traceback = Some("line 1".to_owned());
    world
        .broker
        .fail(&claimed, &failure, b"out", b"err", Duration::ZERO)
        .await?;
    let record = record(&[
        "error = boom",
        "mw_attempt = 1",
        &attempts(&[(0, 1)], "failed", "boom"),
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 0",
        "mw_stderr = err",
        "mw_stdout = out",
        "mw_traceback = line 1",
        "mw_started = 1700000000123",
        "mw_worker = w1-a",
        "retries = 1",
        "status = dispatched",
        "updated_at = 2023-11-14T22:13:21.123Z",
    ]);
    let events = events(&[ENQUEUED, CLAIMED, "retry by w1-a note boom"]);
    let figures = figures("created 1, retried 1, run_ms 1000, started 1");
    is(world, &[&record, &figures, &events, QUEUED]).await
}

/// Status and error have Hero's format, and the reply is sent.
async fn after_fail_without(world: &World) -> Outcome {
    let claimed = running(world, |job| job.reply = true).await?;
    world.fail(&claimed, FailureKind::Script).await?;
    let record = record(&[
        "error = boom",
        "mw_attempt = 1",
        &attempts(&[(0, 1)], "failed", "boom"),
        "mw_dead = failed",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 1",
        "mw_token = t1",
        "mw_started = 1700000000123",
        "mw_worker = w1-a",
        "status = error",
        "updated_at = 2023-11-14T22:13:21.123Z",
    ]);
    let dead = "~:q:dead zset\n  j1 = 1700000001123\n";
    let events = events(&[ENQUEUED, CLAIMED, "error by w1-a note failed"]);
    let reply = "~:q:reply:j1 list for 60 min\n  boom\n";
    let figures = figures("created 1, dead 1, error:script 1, failed 1, run_ms 1000, started 1");
    is(world, &[&record, &figures, dead, &events, reply]).await
}

/// The record is as before the claim, except for the last worker.
async fn after_release(world: &World) -> Outcome {
    let claimed = running(world, |_| {}).await?;
    world.broker.release(&claimed).await?;
    let record = record(&[
        "mw_attempt = 0",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 0",
        "mw_started = 1700000000123",
        "mw_worker = w1-a",
        "status = dispatched",
        "updated_at = 2023-11-14T22:13:21.123Z",
    ]);
    let events = events(&[ENQUEUED, CLAIMED, "release by w1-a note"]);
    let figures = figures("created 1, released 1, started 1");
    is(world, &[&record, &figures, &events, QUEUED]).await
}

/// The same, with a counted loss.
async fn after_reclaim(world: &World) -> Outcome {
    running(world, |_| {}).await?;
    world.lose_all().await?;
    let record = record(&[
        "mw_attempt = 0",
        &attempts(&[(0, 11)], "lost", ""),
        "mw_lost = 1",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 0",
        "mw_started = 1700000000123",
        "mw_worker = w1-a",
        "status = dispatched",
        "updated_at = 2023-11-14T22:13:31.123Z",
    ]);
    let events = events(&[ENQUEUED, CLAIMED, "lost by w1-a note"]);
    let figures = figures("created 1, lost 1, started 1");
    is(world, &[&record, &figures, &events, QUEUED]).await
}

/// The job ends with that reason.
async fn after_the_last_reclaim(world: &World) -> Outcome {
    running(world, |job| job.reply = true).await?;
    for _ in 1..5 {
        world.lose_all().await?;
        world.take_one().await?;
    }
    let ended = Reclaimed {
        ended: vec!["j1".to_owned()],
        ..Reclaimed::default()
    };
    same!(world.lose_all().await?, ended);
    let record = record(&[
        "error = lost: 5 workers went away while they ran this job",
        "mw_attempt = 0",
        &attempts(
            &[(0, 11), (11, 21), (21, 31), (31, 41), (41, 51)],
            "lost",
            "",
        ),
        "mw_dead = poison",
        "mw_lost = 5",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 1",
        "mw_started = 1700000041123",
        "mw_with = 1",
        "mw_worker = w1-a",
        "status = error",
        "updated_at = 2023-11-14T22:14:11.123Z",
    ]);
    let reply =
        "~:q:reply:j1 list for 60 min\n  lost: 5 workers went away while they ran this job\n";
    let lost = [CLAIMED, "lost by w1-a note"].repeat(5);
    let lines = [&[ENQUEUED][..], &lost, &["error by  note poison"]].concat();
    let dead = "~:q:dead zset\n  j1 = 1700000051123\n";
    let told_of = "created 1, dead 1, error:lost 1, failed 1, lost 5, started 5";
    let figures = figures_since(Some(START + 41_000), told_of);
    is(world, &[&record, &figures, dead, &events(&lines), reply]).await
}

/// No field of a run exists.
async fn after_cancel_of_a_waiting_job(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    world.pass(1_000);
    world
        .broker
        .cancel(&world.read("j1").await?, "stopped", true)
        .await?;
    let record = record(&[
        "error = stopped",
        "mw_reply = 0",
        "status = error",
        "updated_at = 2023-11-14T22:13:21.123Z",
    ]);
    let ended = "~:q:ended zset\n  j1 = 1700000001123\n";
    let events = events(&[ENQUEUED, "error by  note"]);
    let figures = figures("created 1, error:stopped 1, failed 1");
    is(world, &[&record, &figures, ended, &events]).await
}

/// The token is gone, so that the run's report is refused.
async fn after_cancel_of_a_running_job(world: &World) -> Outcome {
    let claimed = running(world, |job| job.reply = true).await?;
    world.broker.cancel(&claimed.job, "stopped", true).await?;
    let record = record(&[
        "error = stopped",
        "mw_attempt = 1",
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 1",
        "mw_started = 1700000000123",
        "mw_worker = w1-a",
        "status = error",
        "updated_at = 2023-11-14T22:13:21.123Z",
    ]);
    let ended = "~:q:ended zset\n  j1 = 1700000001123\n";
    let events = events(&[ENQUEUED, CLAIMED, "error by  note"]);
    let reply = "~:q:reply:j1 list for 60 min\n  stopped\n";
    let figures = figures("created 1, error:stopped 1, failed 1, started 1");
    is(world, &[&record, &figures, ended, &events, reply]).await
}

/// The record is as at the beginning, except for the last worker.
async fn after_retry(world: &World) -> Outcome {
    let claimed = running(world, |job| job.reply = true).await?;
    world
        .broker
        .complete(&claimed, b"42", b"out", b"err")
        .await?;
    world.pass(1_000);
    world.broker.retry(&world.read("j1").await?).await?;
    let record = record(&[
        "mw_queue = ~:q:work:type:osis",
        "mw_reply = 1",
        "mw_worker = w1-a",
        "status = dispatched",
        "updated_at = 2023-11-14T22:13:22.123Z",
    ]);
    let events = events(&[
        ENQUEUED,
        CLAIMED,
        "finished by w1-a note",
        "requeue by  note",
    ]);
    let figures = figures("created 1, finished 1, requeued 1, run_ms 1000, started 1");
    is(world, &[&record, &figures, &events, QUEUED]).await
}

/// Only its events are left.
async fn after_delete(world: &World) -> Outcome {
    let claimed = running(world, |job| job.reply = true).await?;
    same!(world.all().await?.contains(LEASED), true);
    world.finish(&claimed, "42").await?;
    world.broker.delete(&world.read("j1").await?).await?;
    world.pass(LEASE_MS);
    let events = events(&[
        ENQUEUED,
        CLAIMED,
        "finished by w1-a note",
        "delete by  note",
    ]);
    let figures = figures("created 1, finished 1, run_ms 1000, started 1");
    is(world, &[&figures, &events]).await
}

/// Only the queue is left, and no key of the worker.
async fn after_leave(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    let feed = world.feed(WORKER);
    world.raw::<()>(&["LPUSH", &feed, "j1"]).await?;
    let queues = [world.queue()];
    let listener = meshwork_broker::Listener {
        worker: WORKER,
        queues: &queues,
    };
    world.broker.deregister_prefetch(listener).await?;
    is(world, &[QUEUED]).await
}
