//! Ends of batches other than by a report of their last job: cancelled, or abandoned by their client; with jobs that
//! others end or delete. Also many ends at once, and one batch within another.

use std::time::Duration;

use meshwork_broker::complete::Completion as JobResult;
use meshwork_broker::{
    BatchCancelled, BatchRefusal, BatchState, Claim, Completed, Enqueued, MAX_ITEMS, PrefetchLists,
    Retention,
};
use meshwork_model::batch::{Callback, NewBatch};

use crate::cases::dependencies::batches::{
    add, batch_id, counts, input, member, open, open_whole, run, seal, status,
};
use crate::cases::harness::world::{Got, LEASE, START, WORKER};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    batches_are_cancelled_with_all_that_waits,
    batches_let_a_callback_run_that_was_queued_before,
    batches_look_at_all_their_jobs,
    batches_are_cancelled_part_by_part,
    batches_that_nobody_cancels_to_the_end_are_cancelled,
    batches_tell_old_workers_to_stop,
    batches_that_nobody_seals_have_failed,
    batches_to_which_jobs_are_added_stay_open,
    batches_count_jobs_that_others_end,
    batches_count_jobs_under_watch_at_once,
    batches_count_jobs_that_are_deleted,
    batches_count_what_is_gone,
    batches_that_are_gone_end_their_callbacks,
    batches_look_again_after_a_while,
    batches_that_end_together_all_end,
    batches_hold_callbacks_of_others,
    batches_that_end_one_another_end_in_one_call,
    batches_end_though_a_callback_has_no_queue,
];

/// Interval between two checks of a batch, in milliseconds.
const PAUSE: u64 = 30_000;

async fn tend(world: &World) -> Got<(usize, bool)> {
    Ok(world.broker.sweep_batches(Retention::default()).await?)
}

async fn cancel(world: &World, id: &str) -> Got<BatchCancelled> {
    Ok(world.broker.cancel_batch(&batch_id(id)?, "no more").await?)
}

/// Running jobs get a stop request; their reports are counted, and no callback runs.
async fn batches_are_cancelled_with_all_that_waits(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2", "j3"]).await?;
    world.put(&["other"]).await?;
    let claimed = world.take_one().await?;
    same!(cancel(world, "nowhere").await?, BatchCancelled::Missing);
    same!(cancel(world, "b").await?, BatchCancelled::Cancelled);
    same!(counts(world, "b").await?, (3, 0, 2, BatchState::Cancelling));
    same!(world.waiting().await?, ["other"]);
    for id in ["j2", "j3"] {
        same!(world.status(id).await?, "error");
        same!(world.read(id).await?.error.as_deref(), Some("no more"));
    }
    for kind in Callback::ALL {
        let job = world.read(kind.as_str()).await?;
        same!(job.error.as_deref(), Some("batch b was cancelled"));
    }
    same!(world.read("j1").await?.stop.as_deref(), Some("no more"));
    let control = world.keys().control_queue_type(&"osis".parse()?);
    same!(world.list(&control).await?, ["j1"]);
    let late = world.broker.enqueue(&[member(world, "b", "j4")?]).await?;
    same!(late, [Enqueued::NotInBatch(BatchRefusal::Ended)]);
    same!(cancel(world, "b").await?, BatchCancelled::Cancelled);
    same!(world.list(&control).await?, ["j1"]);
    run(world, "other", true).await?;
    world.broker.retry(&world.read("j2").await?).await?;
    run(world, "j2", true).await?;
    same!(counts(world, "b").await?, (3, 0, 2, BatchState::Cancelling));
    world.finish(&claimed, "1").await?;
    same!(counts(world, "b").await?, (3, 1, 2, BatchState::Cancelled));
    same!(cancel(world, "b").await?, BatchCancelled::Ended);
    same!(
        status(world, "b").await?.cancelled.as_deref(),
        Some("no more")
    );
    same!(world.waiting().await?, Vec::<String>::new());
    Ok(())
}

/// The callback is queued already. The others end with the batch, at once if it has no jobs left.
async fn batches_let_a_callback_run_that_was_queued_before(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    run(world, "j", false).await?;
    same!(cancel(world, "b").await?, BatchCancelled::Cancelled);
    same!(counts(world, "b").await?, (1, 0, 1, BatchState::Cancelled));
    same!(world.status("done").await?, "error");
    run(world, "failure", true).await?;
    Ok(())
}

/// Jobs that go on running are checked too, each in its turn.
async fn batches_look_at_all_their_jobs(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    add_many(world, "b", 1200).await?;
    for n in (0..1200).step_by(100) {
        let key = world.key(&format!("j{n}"));
        world
            .raw::<()>(&["HSET", &key, "status", "finished"])
            .await?;
    }
    for _ in 0..10 {
        world.pass(PAUSE);
        tend(world).await?;
    }
    same!(counts(world, "b").await?, (1200, 12, 0, BatchState::Open));
    Ok(())
}

/// Adds this many jobs, `j0` and so on, in calls of a thousand.
pub(crate) async fn add_many(world: &World, batch: &str, many: usize) -> Outcome {
    for from in (0..many).step_by(MAX_ITEMS) {
        let ids = from..many.min(from + MAX_ITEMS);
        let jobs: Got<Vec<_>> = ids
            .map(|n| member(world, batch, &format!("j{n}")))
            .collect();
        world.put_jobs(&jobs?).await?;
    }
    Ok(())
}

/// Each call cancels a bounded number of jobs.
async fn batches_are_cancelled_part_by_part(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    add_many(world, "b", 400).await?;
    same!(cancel(world, "b").await?, BatchCancelled::GoingOn);
    let mut before = status(world, "b").await?.failed;
    check!(before > 0 && before < 250);
    while cancel(world, "b").await? == BatchCancelled::GoingOn {
        let now = status(world, "b").await?.failed;
        check!(now - before < 250);
        before = now;
    }
    same!(
        counts(world, "b").await?,
        (400, 0, 400, BatchState::Cancelled)
    );
    same!(world.waiting().await?, Vec::<String>::new());
    Ok(())
}

/// The client that began to cancel may be dead.
async fn batches_that_nobody_cancels_to_the_end_are_cancelled(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    add_many(world, "b", 400).await?;
    same!(cancel(world, "b").await?, BatchCancelled::GoingOn);
    for _ in 0..100 {
        if status(world, "b").await?.state == BatchState::Cancelled {
            break;
        }
        tend(world).await?;
    }
    same!(
        counts(world, "b").await?,
        (400, 0, 400, BatchState::Cancelled)
    );
    Ok(())
}

/// Old workers read their stop queue, and no control queue.
async fn batches_tell_old_workers_to_stop(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    add(world, "b", &["j"]).await?;
    let key = world.key("j");
    world
        .raw::<()>(&["HSET", &key, "status", "started", "worker_id", "old"])
        .await?;
    same!(cancel(world, "b").await?, BatchCancelled::Cancelled);
    let worker = meshwork_model::name::ActorId::foreign("old".to_owned());
    same!(
        world.list(&world.keys().legacy_stop_queue(&worker)).await?,
        ["j"]
    );
    Ok(())
}

/// The client's remaining jobs are missing, so the batch fails whatever the ends of its jobs.
async fn batches_that_nobody_seals_have_failed(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    world.at(START + 3_600_000 - 1);
    tend(world).await?;
    same!(counts(world, "b").await?, (1, 0, 0, BatchState::Open));
    world.pass(1);
    tend(world).await?;
    same!(counts(world, "b").await?, (1, 0, 0, BatchState::Sealed));
    check!(status(world, "b").await?.expired);
    same!(world.waiting().await?, ["j", "failure"]);
    same!(
        input(world, "failure").await?,
        ("b failure".to_owned(), 1, 0, 0)
    );
    world.pass(PAUSE);
    tend(world).await?;
    run(world, "j", true).await?;
    same!(counts(world, "b").await?, (1, 1, 0, BatchState::Failed));
    same!(world.waiting().await?, ["failure", "done"]);
    same!(world.status("success").await?, "error");
    Ok(())
}

/// The timeout begins again with each addition.
async fn batches_to_which_jobs_are_added_stay_open(world: &World) -> Outcome {
    let mut batch = NewBatch::new(batch_id("b")?);
    batch.open_for = Duration::from_secs(60);
    world.broker.open_batch(&batch).await?;
    world.pass(50_000);
    add(world, "b", &["j"]).await?;
    world.pass(50_000);
    tend(world).await?;
    same!(status(world, "b").await?.state, BatchState::Open);
    same!(
        status(world, "b").await?.open_until_ms,
        Some(START + 110_000)
    );
    world.pass(10_000);
    tend(world).await?;
    same!(status(world, "b").await?.state, BatchState::Sealed);
    Ok(())
}

/// A foreign worker writes only the record.
async fn batches_count_jobs_that_others_end(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2"]).await?;
    seal(world, "b").await?;
    for (id, word) in [("j1", "finished"), ("j2", "error")] {
        world.raw::<()>(&["LREM", &world.queue(), "0", id]).await?;
        world
            .raw::<()>(&["HSET", &world.key(id), "status", word])
            .await?;
    }
    world.pass(PAUSE);
    tend(world).await?;
    same!(counts(world, "b").await?, (2, 1, 1, BatchState::Failed));
    same!(world.waiting().await?, ["failure", "done"]);
    Ok(())
}

/// Jobs that are also on an old list are watched anyway.
async fn batches_count_jobs_under_watch_at_once(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    seal(world, "b").await?;
    world.raw::<()>(&["LREM", &world.queue(), "0", "j"]).await?;
    world
        .raw::<()>(&["HSET", &world.key("j"), "status", "finished"])
        .await?;
    let watch = world.keys().watch();
    world.raw::<()>(&["ZADD", &watch, "1", "j"]).await?;
    world.broker.check_orphans().await?;
    same!(counts(world, "b").await?, (1, 1, 0, BatchState::Succeeded));
    same!(world.waiting().await?, ["success", "done"]);
    Ok(())
}

/// A deleted job has not finished.
async fn batches_count_jobs_that_are_deleted(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2"]).await?;
    seal(world, "b").await?;
    world.broker.delete(&world.read("j2").await?).await?;
    same!(counts(world, "b").await?, (2, 0, 1, BatchState::Sealed));
    run(world, "j1", true).await?;
    world.broker.delete(&world.read("j1").await?).await?;
    same!(counts(world, "b").await?, (2, 1, 1, BatchState::Failed));
    Ok(())
}

/// The records were deleted by hand.
async fn batches_count_what_is_gone(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    seal(world, "b").await?;
    world.raw::<()>(&["DEL", &world.key("j")]).await?;
    world.pass(PAUSE);
    tend(world).await?;
    same!(counts(world, "b").await?, (1, 0, 1, BatchState::Failed));
    // A batch that was deleted leaves no key behind.
    open(world, "c", &[]).await?;
    add(world, "c", &["k"]).await?;
    world
        .raw::<()>(&["DEL", &world.keys().batch(&batch_id("c")?)])
        .await?;
    world.pass(PAUSE);
    tend(world).await?;
    same!(
        world
            .raw::<u8>(&["EXISTS", &world.keys().batches_open()])
            .await?,
        0
    );
    same!(
        world
            .raw::<u8>(&["EXISTS", &world.keys().members(&batch_id("c")?)])
            .await?,
        0
    );
    run(world, "failure", true).await?;
    run(world, "done", true).await?;
    run(world, "k", true).await?;
    Ok(())
}

/// A callback waits for its batch only while there is one.
async fn batches_that_are_gone_end_their_callbacks(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    open(world, "c", &[(Callback::Done, "other")]).await?;
    let key = world.keys().batch(&batch_id("b")?);
    world.raw::<()>(&["DEL", &key]).await?;
    world.pass(PAUSE);
    world.broker.check_orphans().await?;
    for kind in Callback::ALL {
        let job = world.read(kind.as_str()).await?;
        same!(job.error.as_deref(), Some("batch b does not exist"));
    }
    same!(world.waiting().await?, Vec::<String>::new());
    seal(world, "c").await?;
    same!(world.waiting().await?, ["other"]);
    let watched = world.keys().watch();
    same!(world.raw::<u8>(&["EXISTS", &watched]).await?, 0);
    Ok(())
}

/// The checks have an interval, also when the clock was set.
async fn batches_look_again_after_a_while(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    add(world, "b", &["j"]).await?;
    seal(world, "b").await?;
    world.pass(PAUSE);
    same!(tend(world).await?, (2, false));
    same!(tend(world).await?, (0, false));
    world.pass(PAUSE - 1);
    same!(tend(world).await?, (0, false));
    world.pass(1);
    same!(tend(world).await?, (2, false));
    world.at(START);
    world
        .raw::<()>(&[
            "ZADD",
            &world.keys().batches_open(),
            &(START + 3 * PAUSE).to_string(),
            "b",
        ])
        .await?;
    same!(tend(world).await?, (2, false));
    Ok(())
}

/// Claims this many jobs and finishes them in one call.
pub(crate) async fn finish_all(world: &World, many: usize) -> Outcome {
    let jobs = world.take(many).await?;
    let result = |claimed| JobResult {
        claimed,
        output: b"1",
        stdout: b"",
        stderr: b"",
    };
    let results: Vec<_> = jobs.iter().map(result).collect();
    let claim = Claim {
        queues: &[],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 0,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &world.token(),
    };
    let exchanged = world.broker.complete_and_claim(&results, claim).await?;
    same!(exchanged.finished, vec![Completed::Finished; many]);
    Ok(())
}

/// One call ends a bounded number of batches; the next calls end the rest.
async fn batches_that_end_together_all_end(world: &World) -> Outcome {
    let many = 130;
    for n in 0..many {
        let (batch, done) = (format!("b{n}"), format!("done{n}"));
        open(world, &batch, &[(Callback::Done, &done)]).await?;
        add(world, &batch, &[&format!("j{n}")]).await?;
        seal(world, &batch).await?;
    }
    finish_all(world, many).await?;
    same!(world.waiting().await?.len(), 100);
    tend(world).await?;
    same!(world.waiting().await?.len(), many);
    for n in 0..many {
        same!(
            counts(world, &format!("b{n}")).await?,
            (1, 1, 0, BatchState::Succeeded)
        );
    }
    Ok(())
}

/// A batch ends when the callbacks of its inner batches have ended. A callback that was not needed counts as a
/// success, and one that could not run as an error.
async fn batches_hold_callbacks_of_others(world: &World) -> Outcome {
    open(world, "outer", &[(Callback::Done, "last")]).await?;
    for (inner, well, needed) in [("good", true, "success"), ("bad", false, "failure")] {
        let mut batch = NewBatch::new(batch_id(inner)?);
        for kind in [Callback::Success, Callback::Failure] {
            let id = format!("{inner}-{kind}");
            batch.callbacks.push((kind, member(world, "outer", &id)?));
        }
        world.broker.open_batch(&batch).await?;
        add(world, inner, &[&format!("{inner}-job")]).await?;
        seal(world, inner).await?;
        run(world, &format!("{inner}-job"), well).await?;
        run(world, &format!("{inner}-{needed}"), true).await?;
        if inner == "good" {
            same!(counts(world, "outer").await?, (2, 2, 0, BatchState::Open));
        }
    }
    same!(counts(world, "outer").await?, (4, 3, 1, BatchState::Open));
    seal(world, "outer").await?;
    same!(counts(world, "outer").await?, (4, 3, 1, BatchState::Failed));
    same!(world.waiting().await?, ["last"]);
    Ok(())
}

/// The outer batch counts its own job, then a callback that is not needed.
async fn batches_that_end_one_another_end_in_one_call(world: &World) -> Outcome {
    open(world, "outer", &[(Callback::Done, "last")]).await?;
    add(world, "outer", &["o"]).await?;
    let mut inner = NewBatch::new(batch_id("inner")?);
    let callback = member(world, "outer", "c")?;
    inner.callbacks.push((Callback::Failure, callback));
    world.broker.open_batch(&inner).await?;
    add(world, "inner", &["i"]).await?;
    seal(world, "inner").await?;
    seal(world, "outer").await?;
    finish_all(world, 2).await?;
    same!(
        counts(world, "inner").await?,
        (1, 1, 0, BatchState::Succeeded)
    );
    same!(
        counts(world, "outer").await?,
        (2, 2, 0, BatchState::Succeeded)
    );
    same!(world.waiting().await?, ["last"]);
    Ok(())
}

/// The queue's key is no list: the callback ends as a dead letter, and the batch still ends.
async fn batches_end_though_a_callback_has_no_queue(world: &World) -> Outcome {
    let mut batch = NewBatch::new(batch_id("b")?);
    let mut job = world.job("done")?;
    job.route.script_type = "sal".parse()?;
    batch.callbacks.push((Callback::Done, job));
    world.broker.open_batch(&batch).await?;
    add(world, "b", &["j"]).await?;
    seal(world, "b").await?;
    world
        .raw::<()>(&["SET", &world.queue_of("sal"), "x"])
        .await?;
    run(world, "j", true).await?;
    same!(counts(world, "b").await?, (1, 1, 0, BatchState::Succeeded));
    same!(world.read("done").await?.dead.as_deref(), Some("queue"));
    Ok(())
}
