//! Prerequisites: a waiting job is in no queue; and the effects of the end of a prerequisite.

use meshwork_broker::{Deleted, Enqueued, Retried};
use meshwork_model::job::{NewJob, OnFailure};
use meshwork_model::outcome::FailureKind;
use meshwork_model::state::Status;

use crate::cases::harness::failure::same_text;
use crate::cases::harness::world::{START, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    what_is_written_of_a_job_that_waits,
    runs_when_the_other_has_finished,
    an_unknown_prerequisite_refuses_the_job,
    a_job_may_wait_for_one_of_the_same_call,
    a_finished_prerequisite_is_none,
    a_failed_prerequisite_ends_it_at_once,
    a_failed_prerequisite_may_not_matter,
    ends_when_the_other_fails,
    runs_all_the_same_if_it_is_to,
    waits_for_each_of_several,
    the_same_twice_is_one,
    however_the_other_ends_it_is_told,
    a_chain_of_fifty_runs_in_order,
    a_chain_of_fifty_fails_as_one,
    a_diamond_runs_its_end_once,
    a_job_that_was_stopped_is_not_told,
    another_job_of_its_id_is_not_told,
    the_failure_of_another_is_not_its_own,
    a_job_deleted_and_stored_again_counts_each_once,
    a_deleted_prerequisite_did_not_finish,
    a_note_told_twice_changes_nothing,
    a_queue_that_is_no_list_ends_it,
];

/// Returns a job with prerequisites.
pub(crate) fn after(world: &World, id: &str, others: &[&str]) -> Result<NewJob, Failure> {
    let mut job = world.job(id)?;
    for other in others {
        job.depends_on.push(other.parse()?);
    }
    Ok(job)
}

/// Stores a job with prerequisites.
pub(crate) async fn put_after(world: &World, id: &str, others: &[&str]) -> Outcome {
    world.put_jobs(&[after(world, id, others)?]).await
}

/// Returns true if a job waits for prerequisites.
pub(crate) async fn waits(world: &World, id: &str) -> Result<bool, Failure> {
    let status = world.read(id).await?.status();
    Ok(status == Some(Status::WaitingForPrerequisites))
}

/// Claims the next job, which must be `id`, and ends it.
pub(crate) async fn run(world: &World, id: &str, well: bool) -> Outcome {
    let claimed = world.take_one().await?;
    same!(claimed.job.id, id);
    if well {
        world.finish(&claimed, "42").await?;
    } else {
        world.fail(&claimed, FailureKind::Permanent).await?;
    }
    Ok(())
}

/// The job is in no queue. Its record has the prerequisites and the deadline, and the prerequisite has the dependent.
async fn what_is_written_of_a_job_that_waits(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    let mut job = after(world, "c", &["a", "b"])?;
    (job.timeout, job.prerequisite_timeout) = (60, Some(2));
    world.put_jobs(&[job]).await?;
    let all = world.all().await?;
    let record = all.split("~:job:c hash\n").nth(1).unwrap_or_default();
    let record = record.split("\n~").next().unwrap_or_default();
    for line in [
        "  mw_waiting = \\\"a\\\" \\\"b\\\"\n",
        "  mw_expires = 1700000002123\n",
        "  prerequisites = [\\\"a\\\",\\\"b\\\"]\n",
        "  status = dispatched\n",
    ] {
        check!(record.contains(line));
    }
    let own = "~:q:next:a list\n  c\n~:q:next:b list\n  c\n~:q:watch zset\n  c = 1700000002123\n";
    check!(all.contains(own));
    check!(all.contains("  dependents = [\\\"c\\\"]\n"));
    same!(world.waiting().await?, ["a", "b"]);
    same!(world.field("c", "mw_queue").await?, Some(world.queue()));
    // A job without a deadline is still checked, and its record has no deadline.
    put_after(world, "d", &["a"]).await?;
    same!(world.field("d", "mw_expires").await?, None);
    let watch = world.keys().watch();
    let at: u64 = world.raw(&["ZSCORE", &watch, "d"]).await?;
    same!(at, START + 5_000);
    Ok(())
}

/// The job goes to the end of its queue then, and has no trace of the wait.
async fn runs_when_the_other_has_finished(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    put_after(world, "child", &["first"]).await?;
    check!(waits(world, "child").await?);
    world.put(&["other"]).await?;
    world.pass(1_000);
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["other", "child"]);
    let record = world.record("child").await?;
    for field in ["mw_waiting", "mw_expires"] {
        check!(!record.contains_key(field));
    }
    let at = record.get("updated_at").map(String::as_str);
    same!(at, Some("2023-11-14T22:13:21.123Z"));
    let own: usize = world
        .raw(&["EXISTS", &world.keys().watch(), &world.named("UNRESOLVED")?])
        .await?;
    same!(own, 0);
    run(world, "other", true).await?;
    run(world, "child", true).await
}

/// The job could never run. A list with the name of a job is no prerequisite.
async fn an_unknown_prerequisite_refuses_the_job(world: &World) -> Outcome {
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    world.put(&["there"]).await?;
    let before = world.all().await?;
    for other in ["gone", "list"] {
        let job = after(world, "child", &["there", other])?;
        let said = world.broker.enqueue(&[job]).await?;
        same!(said, [Enqueued::Unknown(other.parse()?)]);
    }
    world.unchanged(&before).await
}

/// The prerequisite must come before it.
async fn a_job_may_wait_for_one_of_the_same_call(world: &World) -> Outcome {
    let jobs = [
        after(world, "early", &["first"])?,
        world.job("first")?,
        after(world, "child", &["first"])?,
    ];
    let said = world.broker.enqueue(&jobs).await?;
    let unknown = Enqueued::Unknown("first".parse()?);
    same!(said, [unknown, Enqueued::Stored, Enqueued::Stored]);
    check!(waits(world, "child").await?);
    Ok(())
}

/// The job does not wait.
async fn a_finished_prerequisite_is_none(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    run(world, "first", true).await?;
    put_after(world, "child", &["first"]).await?;
    same!(world.waiting().await?, ["child"]);
    same!(
        world.read("child").await?.status(),
        Some(Status::Dispatched)
    );
    Ok(())
}

/// The job is stored with its end and the reason, and its dependents are notified.
async fn a_failed_prerequisite_ends_it_at_once(world: &World) -> Outcome {
    world.put(&["first", "open"]).await?;
    run(world, "first", false).await?;
    let before = world.all().await?;
    let mut job = after(world, "child", &["open", "first"])?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    let child = world.read("child").await?;
    same!(child.status(), Some(Status::Error));
    let why = "prerequisite first did not finish";
    same!(child.error.as_deref(), Some(why));
    same!(world.list(&world.reply("child")).await?, [why]);
    let ended: Option<u64> = world
        .raw(&["ZSCORE", &world.keys().ended(), "child"])
        .await?;
    same!(ended, Some(START));
    // No job waits for another, and the child is in no queue.
    world.broker.delete(&child).await?;
    let events = [
        "child enqueue by  note osis",
        "child error by  note",
        "child delete by  note",
    ];
    world.events_since(&before, &events).await
}

/// The job's policy allows it.
async fn a_failed_prerequisite_may_not_matter(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    run(world, "first", false).await?;
    let mut job = after(world, "child", &["first"])?;
    job.on_failure = OnFailure::Continue;
    world.put_jobs(&[job]).await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

/// The job fails at once, with a reply, and is no dead letter.
async fn ends_when_the_other_fails(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = after(world, "child", &["first"])?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    world.pass(1_000);
    run(world, "first", false).await?;
    let why = "prerequisite first did not finish";
    let record = world.record("child").await?;
    let of = |name: &str| record.get(name).map(String::as_str);
    same!((of("status"), of("error")), (Some("error"), Some(why)));
    same!(
        (of("mw_waiting"), of("mw_expires"), of("mw_dead")),
        (None, None, None)
    );
    same!(of("updated_at"), Some("2023-11-14T22:13:21.123Z"));
    same!(world.list(&world.reply("child")).await?, [why]);
    let watched: usize = world.raw(&["EXISTS", &world.keys().watch()]).await?;
    same!(watched, 0);
    let event = world.events().await?.pop();
    same!(
        event,
        Some(["child", "error", "first", ""].map(str::to_owned))
    );
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// The job is ready after any end of the other.
async fn runs_all_the_same_if_it_is_to(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = after(world, "child", &["first"])?;
    job.on_failure = OnFailure::Continue;
    world.put_jobs(&[job]).await?;
    run(world, "first", false).await?;
    let event = world.events().await?.pop();
    same!(
        event,
        Some(["child", "ready", "first", ""].map(str::to_owned))
    );
    run(world, "child", true).await
}

/// The last end counts, in any order.
async fn waits_for_each_of_several(world: &World) -> Outcome {
    world.put(&["a", "b", "c"]).await?;
    put_after(world, "child", &["c", "a", "b"]).await?;
    for (id, left) in [("a", "\"c\"  \"b\""), ("b", "\"c\"  ")] {
        run(world, id, true).await?;
        check!(waits(world, "child").await?);
        same!(
            world.field("child", "mw_waiting").await?.as_deref(),
            Some(left)
        );
    }
    same!(world.waiting().await?, ["c"]);
    run(world, "c", true).await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

/// A prerequisite that is named twice counts once.
async fn the_same_twice_is_one(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    put_after(world, "child", &["first", "first"]).await?;
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

/// A job that is cancelled while it waits or runs, or lost for good, ends without a result.
async fn however_the_other_ends_it_is_told(world: &World) -> Outcome {
    for how in ["waiting", "running", "lost", "released", "reclaimed"] {
        let first = format!("first-{how}");
        let child = format!("child-{how}");
        world.put(&[&first]).await?;
        put_after(world, &child, &[&first]).await?;
        match how {
            "waiting" => {}
            "running" => drop(world.take_one().await?),
            "lost" => {
                for _ in 0..5 {
                    world.take_one().await?;
                    world.lose_all().await?;
                }
            }
            _ => {
                let claimed = world.take_one().await?;
                world.broker.cancel(&claimed.job, "stop", false).await?;
                if how == "released" {
                    world.broker.release(&claimed).await?;
                } else {
                    world.lose_all().await?;
                }
            }
        }
        if matches!(how, "waiting" | "running") {
            let job = world.read(&first).await?;
            world.broker.cancel(&job, "stop", true).await?;
        }
        check!(!world.broker.resolve_dependents().await?);
        same!(
            (how, world.status(&first).await?),
            (how, "error".to_owned())
        );
        same!(
            (how, world.status(&child).await?),
            (how, "error".to_owned())
        );
    }
    Ok(())
}

fn chain() -> Vec<String> {
    (0..50).map(|n| format!("j{n}")).collect()
}

async fn put_chain(world: &World) -> Result<Vec<String>, Failure> {
    let names = chain();
    world.put(&["j0"]).await?;
    for pair in names.windows(2) {
        put_after(world, &pair[1], &[&pair[0]]).await?;
    }
    Ok(names)
}

/// Each end makes the next job ready.
async fn a_chain_of_fifty_runs_in_order(world: &World) -> Outcome {
    for id in put_chain(world).await? {
        same!(world.waiting().await?, [id.as_str()]);
        run(world, &id, true).await?;
    }
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// The first failure fails each job, with its own prerequisite as the reason.
async fn a_chain_of_fifty_fails_as_one(world: &World) -> Outcome {
    let names = put_chain(world).await?;
    run(world, "j0", false).await?;
    check!(!world.broker.resolve_dependents().await?);
    for pair in names.windows(2) {
        let why = format!("prerequisite {} did not finish", pair[0]);
        same!(world.read(&pair[1]).await?.error, Some(why));
    }
    Ok(())
}

/// Two paths lead to the last job.
async fn a_diamond_runs_its_end_once(world: &World) -> Outcome {
    world.put(&["a"]).await?;
    put_after(world, "b", &["a"]).await?;
    put_after(world, "c", &["a"]).await?;
    put_after(world, "d", &["b", "c"]).await?;
    for id in ["a", "b", "c"] {
        check!(waits(world, "d").await?);
        run(world, id, true).await?;
    }
    same!(world.waiting().await?, ["d"]);
    Ok(())
}

/// The job has ended already.
async fn a_job_that_was_stopped_is_not_told(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    put_after(world, "child", &["first"]).await?;
    let child = world.read("child").await?;
    world.broker.cancel(&child, "stopped", false).await?;
    let before = world.record("child").await?;
    same!(before.get("error").map(String::as_str), Some("stopped"));
    run(world, "first", true).await?;
    same!(world.record("child").await?, before);
    // After a retry the job runs, whatever its prerequisites were.
    same!(
        world.broker.retry(&world.read("child").await?).await?,
        Retried::Queued
    );
    run(world, "child", true).await
}

/// The new job waits for another prerequisite.
async fn another_job_of_its_id_is_not_told(world: &World) -> Outcome {
    world.put(&["first", "second"]).await?;
    put_after(world, "child", &["first"]).await?;
    world.broker.delete(&world.read("child").await?).await?;
    put_after(world, "child", &["second"]).await?;
    run(world, "first", false).await?;
    check!(waits(world, "child").await?);
    run(world, "second", true).await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

/// The job is still in the list of dependents, and waits for another prerequisite by now.
async fn the_failure_of_another_is_not_its_own(world: &World) -> Outcome {
    world.put(&["first", "second"]).await?;
    put_after(world, "child", &["second"]).await?;
    let next = format!("{}first", world.named("DEPENDENTS")?);
    world.raw::<()>(&["RPUSH", &next, "child"]).await?;
    run(world, "first", false).await?;
    check!(waits(world, "child").await?);
    run(world, "second", true).await?;
    run(world, "child", true).await
}

/// The entry of the earlier job is not another prerequisite.
async fn a_job_deleted_and_stored_again_counts_each_once(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    put_after(world, "child", &["a", "b"]).await?;
    same!(
        world.broker.delete(&world.read("child").await?).await?,
        Deleted::Deleted
    );
    put_after(world, "child", &["a", "b"]).await?;
    run(world, "a", true).await?;
    check!(waits(world, "child").await?);
    run(world, "b", true).await?;
    same!(world.waiting().await?, ["child"]);
    Ok(())
}

/// The end that it would have had is unknown.
async fn a_deleted_prerequisite_did_not_finish(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    put_after(world, "child", &["first"]).await?;
    world.broker.delete(&world.read("first").await?).await?;
    check!(waits(world, "child").await?);
    check!(!world.broker.resolve_dependents().await?);
    let why = "prerequisite first did not finish";
    same!(world.read("child").await?.error.as_deref(), Some(why));
    Ok(())
}

/// An end that is noted twice does not make a job ready that waits for another one.
async fn a_note_told_twice_changes_nothing(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    put_after(world, "child", &["a", "b"]).await?;
    run(world, "a", true).await?;
    let before = world.all().await?;
    let (next, settle) = (
        format!("{}a", world.named("DEPENDENTS")?),
        world.named("UNRESOLVED")?,
    );
    world.raw::<()>(&["RPUSH", &next, "child"]).await?;
    world.raw::<()>(&["RPUSH", &settle, "a"]).await?;
    check!(!world.broker.resolve_dependents().await?);
    same_text(&world.all().await?, &before)
}

/// Otherwise it would wait where no worker reads.
async fn a_queue_that_is_no_list_ends_it(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = after(world, "child", &["first"])?;
    job.route.script_type = "sal".parse()?;
    world.put_jobs(&[job]).await?;
    world
        .raw::<()>(&["SET", &world.queue_of("sal"), "x"])
        .await?;
    let claimed = world.take(1).await?;
    same!(ids(&claimed), ["first"]);
    world.finish(&claimed[0], "42").await?;
    let child = world.record("child").await?;
    let of = |name: &str| child.get(name).map(String::as_str);
    same!(
        (of("status"), of("mw_dead")),
        (Some("error"), Some("queue"))
    );
    let why = format!(
        "the key of its queue, {}, is no list",
        world.queue_of("sal")
    );
    same!(of("error"), Some(why.as_str()));
    Ok(())
}
