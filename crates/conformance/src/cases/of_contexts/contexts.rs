//! Contexts, in both layouts: differences of their jobs from those of Hero, which the same scripts run.

use std::time::Duration;

use meshwork_broker::context::{Commit, Database, Read};
use meshwork_broker::{Controlled, Enqueued, Failed};
use meshwork_model::job::{Job, NewJob, When};
use meshwork_model::keys::context::JobKey;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Route;
use meshwork_model::time::iso;
use redis::aio::ConnectionLike as _;

use crate::cases::harness::world::{Got, LEASE_MS, START, WORKER};
use crate::cases::of_contexts::in_context::in_both;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_job_of_a_plain_client_is_run,
    a_new_job_has_the_fields_of_the_specification,
    both_paths_of_a_claim_read_the_same_record,
    an_error_is_in_the_result_too,
    an_element_that_names_no_job_of_the_context_is_dropped_unwritten,
    a_request_that_names_no_job_changes_nothing,
    a_dependent_starts_after_its_prerequisite,
    a_waiting_job_of_a_plain_client_is_released_and_runs,
    a_delayed_dependent_keeps_its_delay,
    a_job_waits_until_its_gate_is_open,
    a_lost_job_runs_again,
    the_end_of_a_job_marks_its_message,
    an_unknown_prerequisite_is_refused,
    settings_of_a_queue_apply,
    a_record_without_a_status_ends,
    keys_of_another_database_are_read_and_changed,
];

/// Start time of the cases, in seconds and in milliseconds.
const SECONDS: &str = "1700000000";
const MS: &str = "1700000000123";

/// Returns the key of a job of caller 12.
pub(crate) fn job_of(world: &World, id: u32) -> Got<String> {
    let context = world.keys().context();
    let context = context.ok_or_else(|| Failure::new("no context"))?;
    Ok(context.job(JobKey::new(12, id)))
}

/// Returns a new Meshwork job.
pub(crate) fn new(world: &World, id: u32) -> Got<NewJob> {
    let key = JobId::foreign(job_of(world, id)?);
    let mut job = NewJob::new(key, Route::to("osis".parse()?), "print(1)");
    job.reply = true;
    Ok(job)
}

/// Writes a job as a plain client does, with these additional fields, and pushes its key.
pub(crate) async fn plain(world: &World, id: u32, fields: &[(&str, &str)]) -> Got<String> {
    let key = job_of(world, id)?;
    world.put_foreign(&key, fields).await?;
    Ok(key)
}

/// Records of contexts are read and changed over the connection of the node.
async fn keys_of_another_database_are_read_and_changed(world: &World) -> Outcome {
    // The keys begin with the namespace of the case, so other cases do not meet them there.
    let number = u32::from(world.conn().get_db() == 0);
    let other = match world.conn().in_database(number).await {
        // A cluster.
        Err(error) if error.kind() == redis::ErrorKind::InvalidClientConfig => return Ok(()),
        conn => conn?,
    };
    let prefix = world.keys().namespace();
    let [one, list] = ["one", "list"].map(|name| format!("{prefix}:{name}"));
    let commit = Commit::default()
        .set(&one, [("a", "1")])
        .push(&list, b"x")
        .push(&list, b"y");
    let database = Database::Own(number);
    let store = world.contexts();
    check!(store.commit(database, &commit).await?.is_done());
    let keys = [one.as_str(), list.as_str()];
    let found = store.hashes(database, &[&one]).await?;
    let tail = store.elements(database, &list, Read::Tail(9)).await?;
    let here = store.hashes(Database::Node, &[&one]).await?;
    let mut del = redis::cmd("DEL");
    let deleted: usize = del.arg(&keys).query_async(&mut other.clone()).await?;
    same!(found, [vec![("a".to_owned(), b"1".to_vec())]]);
    same!(tail, [b"y", b"x"]);
    same!(here, [vec![]]);
    same!(deleted, 2);
    Ok(())
}

async fn a_job_of_a_plain_client_is_run(world: &World) -> Outcome {
    in_both(world, async |world| {
        let key = plain(world, 2001, &[("script_type", "osis"), ("retries", "0")]).await?;
        let claimed = world.take_one().await?;
        same!(
            (&claimed.job.id, world.status(&key).await?),
            (&key, "started".to_owned())
        );
        world.pass(5_000);
        world.finish(&claimed, "42").await?;
        let record = world.record(&key).await?;
        same!(record["status"], "finished");
        same!(record["result"], r#"{"result":"42"}"#);
        same!(record["updated_at"], "1700000005");
        check!(!record.contains_key("output"));
        let read = world.read(&key).await?;
        same!(
            (read.started_ms, read.updated_at.as_str()),
            (Some(START), "2023-11-14T22:13:25.123Z")
        );
        // A plain runner knows only seconds: its end is not before the start.
        let seconds = (START / 1000).to_string();
        world
            .raw::<()>(&["HSET", &key, "updated_at", &seconds])
            .await?;
        same!(world.read(&key).await?.updated_at, iso(START));
        let later = (START / 1000 + 9).to_string();
        world
            .raw::<()>(&["HSET", &key, "updated_at", &later])
            .await?;
        same!(
            world.read(&key).await?.updated_at,
            "2023-11-14T22:13:29.000Z"
        );
        same!(read.output.as_deref(), Some(&b"42"[..]));
        // The client did not request a reply.
        same!(world.raw::<u32>(&["EXISTS", &world.reply(&key)]).await?, 0);
        Ok(())
    })
    .await
}

async fn a_new_job_has_the_fields_of_the_specification(world: &World) -> Outcome {
    in_both(world, async |world| {
        let mut job = new(world, 1)?;
        job.env_vars = [("A".to_owned(), "1".to_owned())].into_iter().collect();
        world.put_jobs(&[job]).await?;
        let key = job_of(world, 1)?;
        let record = world.record(&key).await?;
        let context = world
            .keys()
            .context()
            .map(|keys| keys.context().to_string());
        let expected = [
            ("caller_id", "12"),
            ("context_id", &context.unwrap_or_default()),
            ("created_at", SECONDS),
            ("dependends", "[]"),
            ("env_vars", r#"{"A":"1"}"#),
            ("id", "1"),
            ("mw_created_ms", MS),
            ("mw_reply", "1"),
            ("mw_updated_ms", MS),
            ("prerequisites", "[]"),
            ("result", "{}"),
            ("retries", "0"),
            ("script", "print(1)"),
            ("script_type", "osis"),
            ("status", "dispatched"),
            ("timeout", &record["timeout"]),
            ("updated_at", SECONDS),
        ];
        let own = |(name, value): (&String, &String)| (name.clone(), value.clone());
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        same!(
            record.iter().map(own).collect::<Vec<_>>(),
            expected.to_vec()
        );
        let claimed = world.take_one().await?;
        world.finish(&claimed, r#"{"sum":3}"#).await?;
        same!(
            world.field(&key, "result").await?.as_deref(),
            Some(r#"{"result":"{\"sum\":3}"}"#)
        );
        let stored = r#"{"result":"{\"sum\":3}"}"#;
        same!(world.list(&world.reply(&key)).await?, [stored]);
        let read = world.read(&key).await?.output;
        same!(read.as_deref(), Some(&br#"{"sum":3}"#[..]));
        Ok(())
    })
    .await
}

/// The short path of a claim and the long one read the same record.
async fn both_paths_of_a_claim_read_the_same_record(world: &World) -> Outcome {
    in_both(world, async |world| {
        world.put_jobs(&[new(world, 1)?]).await?;
        let short = world.take_one().await?.job;
        let long = world.read(&short.id).await?;
        let summary = |job: &Job| {
            let job = job.clone();
            let ids = (job.id, job.caller_id, job.context_id);
            let work = (job.script, job.timeout, job.retries, job.env_vars);
            (ids, work, job.created_at)
        };
        same!(summary(&short), summary(&long));
        same!(short.created_at, iso(START));
        Ok(())
    })
    .await
}

async fn an_error_is_in_the_result_too(world: &World) -> Outcome {
    in_both(world, async |world| {
        let mut job = new(world, 1)?;
        job.retries = 1;
        world.put_jobs(&[job]).await?;
        let key = job_of(world, 1)?;
        let first = world.take_one().await?;
        same!(
            world.fail(&first, FailureKind::Script).await?,
            Failed::Requeued
        );
        // The job has not ended yet.
        same!(world.field(&key, "result").await?.as_deref(), Some("{}"));
        let second = world.take_one().await?;
        same!(
            world.fail(&second, FailureKind::Script).await?,
            Failed::Failed
        );
        let record = world.record(&key).await?;
        same!((&*record["status"], &*record["error"]), ("error", "boom"));
        same!(record["result"], r#"{"error":"boom"}"#);
        same!(world.read(&key).await?.output, None);
        Ok(())
    })
    .await
}

async fn an_element_that_names_no_job_of_the_context_is_dropped_unwritten(
    world: &World,
) -> Outcome {
    in_both(world, async |world| {
        let prefix = world.keys().prefix();
        let strange = [
            format!("{prefix}flow:3"),
            format!("{prefix}job:12:02"),
            format!("{prefix}job:12:4294967296"),
            format!("{prefix}x"),
            "{ctx:99999}:job:12:1".to_owned(),
        ];
        for key in &strange {
            world
                .put_hash(key, &[("status", "dispatched"), ("script", "1")])
                .await?;
        }
        let before = world.record(&strange[0]).await?;
        let taken = world.claim(WORKER, &[world.queue()], 9).await?;
        same!((taken.jobs.len(), taken.dropped), (0, strange.len()));
        let events = world.events().await?;
        for key in &strange {
            same!(world.record(key).await?, before);
            let note = "no key of a job of this context";
            let note = [key, "drop", WORKER, note].map(str::to_owned);
            check!(events.contains(&note));
        }
        for key in &strange {
            world.raw::<()>(&["DEL", key]).await?;
        }
        Ok(())
    })
    .await
}

/// The coordinator looks at the message before all others.
async fn the_end_of_a_job_marks_its_message(world: &World) -> Outcome {
    in_both(world, async |world| {
        let context = world.keys().context();
        let open = context.map(|keys| keys.open()).unwrap_or_default();
        let message = |id: u32| format!("{}message:12:{id}", world.keys().prefix());
        let mut ran = Vec::new();
        for id in 1..=3 {
            let of = message(id);
            let fields = [("script_type", "osis"), ("mw_message", of.as_str())];
            ran.push(plain(world, id, &fields).await?);
        }
        // The third one is not open.
        for id in [1, 2] {
            let later = (world.now() + 5_000).to_string();
            let mark = ["ZADD", &*open, &later, &*message(id)];
            world.raw::<()>(&mark).await?;
        }
        let scores = async || {
            let range = ["ZRANGE", &*open, "0", "-1", "WITHSCORES"];
            world.raw::<Vec<(String, u64)>>(&range).await
        };
        let before = scores().await?;
        let claimed = world.take(3).await?;
        same!(claimed.len(), 3);
        same!(scores().await?, before);
        let (mut finished, mut failed) = (Vec::new(), Vec::new());
        for claimed in claimed {
            match claimed.job.id.as_str() == ran[1] {
                true => failed.push(claimed),
                false => finished.push(claimed),
            }
        }
        for claimed in &finished {
            world.finish(claimed, "1").await?;
        }
        same!(scores().await?[0], (message(1), 0));
        same!(scores().await?.len(), 2);
        world.fail(&failed[0], FailureKind::Script).await?;
        same!(scores().await?, [(message(1), 0), (message(2), 0)]);
        world.raw::<()>(&["DEL", &open]).await?;
        Ok(())
    })
    .await
}

async fn a_request_that_names_no_job_changes_nothing(world: &World) -> Outcome {
    in_both(world, async |world| {
        let flow = format!("{}flow:3", world.keys().prefix());
        world
            .raw::<()>(&["HSET", &flow, "status", "dispatched"])
            .await?;
        let control = world.keys().control_queue_type(&"osis".parse()?);
        world.raw::<()>(&["LPUSH", &control, &flow]).await?;
        let request = Controlled {
            worker: WORKER,
            queues: std::slice::from_ref(&control),
            types: &["osis".parse()?],
            held: &[],
            turn: Duration::from_secs(1),
        };
        world.broker.control(request).await?;
        same!(world.record(&flow).await?.len(), 1);
        same!(world.list(&control).await?.len(), 0);
        Ok(())
    })
    .await
}

async fn a_dependent_starts_after_its_prerequisite(world: &World) -> Outcome {
    in_both(world, async |world| {
        let mut second = new(world, 2)?;
        second.depends_on = vec![JobId::foreign(job_of(world, 1)?)];
        world.put_jobs(&[new(world, 1)?, second]).await?;
        let (first, second) = (job_of(world, 1)?, job_of(world, 2)?);
        let record = world.record(&second).await?;
        same!(record["status"], "waiting_for_prerequisites");
        same!(
            (&*record["dependends"], &*record["prerequisites"]),
            ("[1]", "[]")
        );
        check!(!world.record(&first).await?.contains_key("dependents"));
        let claimed = world.take_one().await?;
        same!(claimed.job.id, first);
        world.finish(&claimed, "").await?;
        // The status changes directly to `started`.
        same!(world.status(&second).await?, "waiting_for_prerequisites");
        same!(world.take_one().await?.job.id, second);
        same!(world.status(&second).await?, "started");
        Ok(())
    })
    .await
}

async fn a_waiting_job_of_a_plain_client_is_released_and_runs(world: &World) -> Outcome {
    in_both(world, async |world| {
        let waiting = [
            ("status", "waiting_for_prerequisites"),
            ("dependends", "[1]"),
        ];
        let second = plain(world, 2, &waiting).await?;
        check!(world.take(5).await?.is_empty());
        let first = plain(world, 1, &[]).await?;
        let claimed = world.take_one().await?;
        same!(claimed.job.id, first);
        world.finish(&claimed, "1").await?;
        same!(world.take_one().await?.job.id, second);
        Ok(())
    })
    .await
}

async fn a_delayed_dependent_keeps_its_delay(world: &World) -> Outcome {
    in_both(world, async |world| {
        let mut second = new(world, 2)?;
        second.depends_on = vec![JobId::foreign(job_of(world, 1)?)];
        second.when = Some(When::In(60_000));
        world.put_jobs(&[new(world, 1)?, second]).await?;
        let claimed = world.take_one().await?;
        world.finish(&claimed, "").await?;
        check!(world.take(5).await?.is_empty());
        world.pass(60_000);
        world.broker.promote().await?;
        same!(world.take_one().await?.job.id, job_of(world, 2)?);
        Ok(())
    })
    .await
}

async fn a_job_waits_until_its_gate_is_open(world: &World) -> Outcome {
    in_both(world, async |world| {
        let gates = [
            ("status", "waiting_for_prerequisites"),
            ("prerequisites", r#"["approved"]"#),
        ];
        let key = plain(world, 1, &gates).await?;
        check!(world.take(5).await?.is_empty());
        world.pass(5_000);
        world.broker.check_orphans().await?;
        world.broker.resolve_dependents().await?;
        check!(world.take(5).await?.is_empty());
        world
            .raw::<()>(&["SADD", &world.named("GATES")?, "approved"])
            .await?;
        world.pass(5_000);
        world.broker.check_orphans().await?;
        world.broker.resolve_dependents().await?;
        same!(world.take_one().await?.job.id, key);
        Ok(())
    })
    .await
}

async fn a_lost_job_runs_again(world: &World) -> Outcome {
    in_both(world, async |world| {
        world.put_jobs(&[new(world, 1)?]).await?;
        let claimed = world.take_one().await?;
        same!(
            world.lease(&claimed.job.id).await?,
            Some(world.now() + LEASE_MS)
        );
        same!(world.lose_all().await?.requeued, [claimed.job.id.as_str()]);
        let again = world.take_one().await?;
        same!(
            (again.job.id.as_str(), again.job.lost),
            (claimed.job.id.as_str(), 1)
        );
        check!(world.now() > START);
        Ok(())
    })
    .await
}

async fn an_unknown_prerequisite_is_refused(world: &World) -> Outcome {
    in_both(world, async |world| {
        let mut job = new(world, 1)?;
        job.depends_on = vec![JobId::foreign("{ctx:99999}:job:12:1".to_owned())];
        check!(world.broker.enqueue(&[job]).await.is_err());
        let mut job = new(world, 1)?;
        job.id = "j1".parse()?;
        check!(world.broker.enqueue(&[job]).await.is_err());
        let mut job = new(world, 1)?;
        job.depends_on = vec![JobId::foreign(job_of(world, 9)?)];
        let unknown = Enqueued::Unknown(JobId::foreign(job_of(world, 9)?));
        same!(world.broker.enqueue(&[job]).await?, [unknown]);
        same!(world.raw::<u32>(&["EXISTS", &job_of(world, 1)?]).await?, 0);
        Ok(())
    })
    .await
}

/// A queue with settings takes the long path.
async fn settings_of_a_queue_apply(world: &World) -> Outcome {
    in_both(world, async |world| {
        let (config, queue) = (world.keys().config(), format!("queue:{}", world.queue()));
        world
            .raw::<()>(&["HSET", &config, &queue, "concurrency=1"])
            .await?;
        world.put_jobs(&[new(world, 1)?, new(world, 2)?]).await?;
        let claimed = world.take_one().await?;
        check!(world.take(5).await?.is_empty());
        world.finish(&claimed, "1").await?;
        same!(world.take(5).await?.len(), 1);
        Ok(())
    })
    .await
}

/// Its key is that of a job, so its client learns why it does not run.
async fn a_record_without_a_status_ends(world: &World) -> Outcome {
    in_both(world, async |world| {
        let key = job_of(world, 1)?;
        world
            .put_hash(&key, &[("script", "1"), ("script_type", "osis")])
            .await?;
        check!(world.take(1).await?.is_empty());
        let record = world.record(&key).await?;
        same!(record["status"], "error");
        same!(record["error"], "unreadable: it has no status");
        check!(world.waiting().await?.is_empty());
        Ok(())
    })
    .await
}
