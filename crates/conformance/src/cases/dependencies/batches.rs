//! Batches: their jobs, their counters, and their callbacks. [`crate::cases::dependencies::batch_ends`] has ends other than by the last
//! job.

use meshwork_broker::{
    BatchOpened, BatchRefusal, BatchSealed, BatchState, BatchStatus, Completed, Enqueued, Failed,
};
use meshwork_model::batch::{BatchEnd, Callback, Membership, NewBatch};
use meshwork_model::job::NewJob;
use meshwork_model::name::{BatchId, JobId};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::Got;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    batches_open_with_callbacks_that_wait,
    batches_start_no_callback_before,
    batches_are_opened_once,
    batches_write_nothing_where_a_callback_is_refused,
    batches_count_each_job_once,
    batches_end_with_the_last_job,
    batches_that_succeed_forget_the_callback_on_failure,
    batches_tell_the_first_failure_at_once_and_once,
    batches_count_a_result_once,
    batches_wait_for_retries,
    batches_without_jobs_end_when_they_are_sealed,
    batches_stay_open_until_they_are_sealed,
    batches_take_jobs_of_their_own_when_sealed,
    batches_take_nothing_when_they_have_ended,
    batches_have_a_limit,
    batches_count_a_job_that_can_never_run,
    batches_count_a_retry_by_hand_again,
    batches_that_have_ended_count_no_retry,
    batches_do_without_a_callback_that_was_stopped,
];

pub(crate) fn batch_id(id: &str) -> Got<BatchId> {
    Ok(id.parse()?)
}

/// Opens a batch with callbacks that have these ids.
pub(crate) async fn open(world: &World, id: &str, callbacks: &[(Callback, &str)]) -> Outcome {
    let mut batch = NewBatch::new(batch_id(id)?);
    for (kind, job) in callbacks {
        batch.callbacks.push((*kind, world.job(job)?));
    }
    same!(world.broker.open_batch(&batch).await?, BatchOpened::Opened);
    Ok(())
}

/// Opens a batch with all three callbacks: `done`, `success` and `failure`.
pub(crate) async fn open_whole(world: &World, id: &str) -> Outcome {
    let callbacks = Callback::ALL.map(|kind| (kind, kind.as_str()));
    open(world, id, &callbacks).await
}

/// Returns a job of a batch.
pub(crate) fn member(world: &World, batch: &str, id: &str) -> Got<NewJob> {
    let mut job = world.job(id)?;
    let batch = batch_id(batch)?;
    job.batch = Some(Membership { batch, by: None });
    Ok(job)
}

/// Adds jobs that do not exist yet.
pub(crate) async fn add(world: &World, batch: &str, ids: &[&str]) -> Outcome {
    let jobs: Got<Vec<_>> = ids.iter().map(|id| member(world, batch, id)).collect();
    world.put_jobs(&jobs?).await
}

/// Adds one more job, and returns the answer.
async fn added(world: &World, job: NewJob) -> Got<Enqueued> {
    let mut answers = world.broker.enqueue(&[job]).await?;
    answers.pop().ok_or_else(|| Failure::new("no answer"))
}

pub(crate) async fn seal(world: &World, id: &str) -> Got<BatchSealed> {
    Ok(world.broker.seal_batch(&batch_id(id)?).await?)
}

pub(crate) async fn status(world: &World, id: &str) -> Got<BatchStatus> {
    let status = world.broker.batch_status(&batch_id(id)?).await?;
    status.ok_or_else(|| Failure::new(format!("batch {id} is not there")))
}

/// Returns the total, the successes, the failures, and the state.
pub(crate) async fn counts(world: &World, id: &str) -> Got<(u64, u64, u64, BatchState)> {
    let status = status(world, id).await?;
    Ok((status.total, status.succeeded, status.failed, status.state))
}

/// Claims the next job, which must be this one, and ends it.
pub(crate) async fn run(world: &World, id: &str, well: bool) -> Outcome {
    let claimed = world.take_one().await?;
    same!(claimed.job.id, id);
    if well {
        same!(world.finish(&claimed, "1").await?, Completed::Finished);
    } else {
        same!(
            world.fail(&claimed, FailureKind::Permanent).await?,
            Failed::Failed
        );
    }
    Ok(())
}

/// Returns the input of a callback.
pub(crate) async fn input(world: &World, id: &str) -> Got<(String, u64, u64, u64)> {
    let input = world.read(id).await?.input.unwrap_or_default();
    let end = BatchEnd::parse(&input).map_err(Failure::new)?;
    Ok((
        format!("{} {}", end.batch, end.why),
        end.total,
        end.succeeded,
        end.failed,
    ))
}

/// Callbacks are waiting jobs in no queue.
async fn batches_open_with_callbacks_that_wait(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    same!(counts(world, "b").await?, (0, 0, 0, BatchState::Open));
    same!(world.waiting().await?, Vec::<String>::new());
    let job = world.read("done").await?;
    same!(
        job.status().map(|status| status.as_str()),
        Some("waiting_for_prerequisites")
    );
    same!(job.callback.as_deref(), Some("done b"));
    let callbacks = status(world, "b").await?.callbacks;
    let expected = Callback::ALL.map(|kind| (kind, kind.as_str().to_owned()));
    same!(callbacks, expected);
    Ok(())
}

/// A callback does not start even if its id is pushed by hand.
async fn batches_start_no_callback_before(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    world.push("done").await?;
    same!(world.take(1).await?.len(), 0);
    same!(world.status("done").await?, "dispatched");
    Ok(())
}

/// The call is repeated, as after a broken connection.
async fn batches_are_opened_once(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    let before = world.all().await?;
    world.pass(1000);
    let mut again = NewBatch::new(batch_id("b")?);
    again.callbacks.push((Callback::Done, world.job("other")?));
    again.request_digest = Some("of-b".to_owned());
    same!(world.broker.open_batch(&again).await?, BatchOpened::Exists);
    world.unchanged(&before).await?;
    same!(status(world, "b").await?.request_digest, None);
    again = NewBatch::new(batch_id("b2")?);
    again.request_digest = Some("of-b2".to_owned());
    same!(world.broker.open_batch(&again).await?, BatchOpened::Opened);
    let digest = status(world, "b2").await?.request_digest;
    same!(digest.as_deref(), Some("of-b2"));
    Ok(())
}

/// Neither the batch nor the callbacks before the refused one are written.
async fn batches_write_nothing_where_a_callback_is_refused(world: &World) -> Outcome {
    world.put(&["taken"]).await?;
    let before = world.all().await?;
    let mut batch = NewBatch::new(batch_id("b")?);
    batch.callbacks.push((Callback::Done, world.job("free")?));
    batch
        .callbacks
        .push((Callback::Success, world.job("taken")?));
    let refused = BatchOpened::Refused(Callback::Success, Enqueued::Exists);
    same!(world.broker.open_batch(&batch).await?, refused);
    batch.callbacks[1].1 = member(world, "nowhere", "inner")?;
    let why = Enqueued::NotInBatch(BatchRefusal::Missing);
    same!(
        world.broker.open_batch(&batch).await?,
        BatchOpened::Refused(Callback::Success, why)
    );
    world.unchanged(&before).await
}

/// The call may be repeated.
async fn batches_count_each_job_once(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2"]).await?;
    same!(
        added(world, member(world, "b", "j1")?).await?,
        Enqueued::Exists
    );
    same!(counts(world, "b").await?, (2, 0, 0, BatchState::Open));
    run(world, "j1", true).await?;
    same!(
        added(world, member(world, "b", "j1")?).await?,
        Enqueued::Exists
    );
    same!(counts(world, "b").await?, (2, 1, 0, BatchState::Open));
    same!(status(world, "b").await?.pending(), 1);
    Ok(())
}

/// The callbacks for success and for the end are queued once, with the counters of the batch as input.
async fn batches_end_with_the_last_job(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2"]).await?;
    same!(seal(world, "b").await?, BatchSealed::Sealed);
    run(world, "j1", true).await?;
    same!(counts(world, "b").await?, (2, 1, 0, BatchState::Sealed));
    same!(world.waiting().await?, ["j2"]);
    world.pass(5000);
    run(world, "j2", true).await?;
    same!(counts(world, "b").await?, (2, 2, 0, BatchState::Succeeded));
    same!(
        status(world, "b").await?.ended_ms,
        Some(crate::cases::harness::world::START + 5000)
    );
    same!(world.waiting().await?, ["success", "done"]);
    same!(
        input(world, "success").await?,
        ("b success".to_owned(), 2, 2, 0)
    );
    same!(input(world, "done").await?, ("b done".to_owned(), 2, 2, 0));
    run(world, "success", true).await?;
    run(world, "done", true).await?;
    same!(world.take(1).await?.len(), 0);
    same!(seal(world, "b").await?, BatchSealed::Ended);
    same!(world.waiting().await?, Vec::<String>::new());
    Ok(())
}

/// A job that waits for that callback ends in error.
async fn batches_that_succeed_forget_the_callback_on_failure(world: &World) -> Outcome {
    open(world, "b", &[(Callback::Failure, "failure")]).await?;
    let mut after = world.job("after")?;
    after.depends_on.push("failure".parse()?);
    world.put_jobs(&[after]).await?;
    add(world, "b", &["j"]).await?;
    seal(world, "b").await?;
    run(world, "j", true).await?;
    same!(world.status("failure").await?, "");
    world.broker.resolve_dependents().await?;
    same!(world.status("after").await?, "error");
    same!(world.waiting().await?, Vec::<String>::new());
    let events = world.events().await?;
    check!(
        events
            .iter()
            .any(|[id, what, by, _]| id == "failure" && what == "unneeded" && by == "b")
    );
    Ok(())
}

/// The callback is queued even before the batch is sealed. The one for success will never run.
async fn batches_tell_the_first_failure_at_once_and_once(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2", "j3"]).await?;
    run(world, "j1", false).await?;
    same!(world.waiting().await?, ["j2", "j3", "failure"]);
    same!(
        input(world, "failure").await?,
        ("b failure".to_owned(), 3, 0, 1)
    );
    same!(
        status(world, "b").await?.first_failed.as_deref(),
        Some("j1")
    );
    run(world, "j2", false).await?;
    same!(world.waiting().await?, ["j3", "failure"]);
    seal(world, "b").await?;
    run(world, "j3", true).await?;
    same!(counts(world, "b").await?, (3, 1, 2, BatchState::Failed));
    same!(
        status(world, "b").await?.first_failed.as_deref(),
        Some("j1")
    );
    same!(world.waiting().await?, ["failure", "done"]);
    same!(world.status("success").await?, "error");
    let error = world.read("success").await?.error;
    same!(error.as_deref(), Some("batch b did not succeed"));
    same!(input(world, "done").await?, ("b done".to_owned(), 3, 1, 2));
    Ok(())
}

/// The worker reports twice, as after a broken connection.
async fn batches_count_a_result_once(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2"]).await?;
    seal(world, "b").await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "1").await?;
    world.finish(&claimed, "1").await?;
    same!(counts(world, "b").await?, (2, 1, 0, BatchState::Sealed));
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    same!(counts(world, "b").await?, (2, 1, 1, BatchState::Failed));
    same!(world.waiting().await?, ["failure", "done"]);
    Ok(())
}

/// A failed run with a retry left does not end the job; neither does a lost or released one.
async fn batches_wait_for_retries(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    let mut job = member(world, "b", "j")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    seal(world, "b").await?;
    let claimed = world.take_one().await?;
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Requeued
    );
    let claimed = world.take_one().await?;
    world.broker.release(&claimed).await?;
    world.take_one().await?;
    world.lose_all().await?;
    same!(counts(world, "b").await?, (1, 0, 0, BatchState::Sealed));
    same!(world.waiting().await?, ["j"]);
    run(world, "j", true).await?;
    same!(counts(world, "b").await?, (1, 1, 0, BatchState::Succeeded));
    Ok(())
}

/// A batch may have no jobs.
async fn batches_without_jobs_end_when_they_are_sealed(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    same!(seal(world, "b").await?, BatchSealed::Sealed);
    same!(counts(world, "b").await?, (0, 0, 0, BatchState::Succeeded));
    same!(world.waiting().await?, ["success", "done"]);
    same!(seal(world, "nowhere").await?, BatchSealed::Missing);
    Ok(())
}

/// The number of ended jobs does not matter.
async fn batches_stay_open_until_they_are_sealed(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1"]).await?;
    run(world, "j1", true).await?;
    same!(counts(world, "b").await?, (1, 1, 0, BatchState::Open));
    add(world, "b", &["j2"]).await?;
    run(world, "j2", true).await?;
    same!(world.waiting().await?, Vec::<String>::new());
    seal(world, "b").await?;
    same!(counts(world, "b").await?, (2, 2, 0, BatchState::Succeeded));
    same!(world.waiting().await?, ["success", "done"]);
    Ok(())
}

/// A running job may add jobs to its own batch, and to no other.
async fn batches_take_jobs_of_their_own_when_sealed(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    open(world, "other", &[]).await?;
    add(world, "b", &["j1"]).await?;
    add(world, "other", &["j0"]).await?;
    seal(world, "b").await?;
    seal(world, "other").await?;
    let sealed = Enqueued::NotInBatch(BatchRefusal::Sealed);
    same!(added(world, member(world, "b", "j2")?).await?, sealed);
    same!(world.status("j2").await?, "");
    let claimed = world.take_one().await?;
    let by = |batch: &str, token: &str| -> Got<NewJob> {
        let mut job = member(world, batch, "j2")?;
        if let Some(of) = &mut job.batch {
            of.by = Some((JobId::foreign("j1".to_owned()), token.to_owned()));
        }
        Ok(job)
    };
    same!(added(world, by("b", "another")?).await?, sealed);
    same!(
        added(world, by("b", &claimed.token)?).await?,
        Enqueued::Stored
    );
    let mut elsewhere = by("other", &claimed.token)?;
    elsewhere.id = "j3".parse()?;
    same!(added(world, elsewhere).await?, sealed);
    world.finish(&claimed, "1").await?;
    same!(counts(world, "b").await?, (2, 1, 0, BatchState::Sealed));
    same!(
        added(world, by("b", &claimed.token)?).await?,
        Enqueued::Exists
    );
    let mut late = by("b", &claimed.token)?;
    late.id = "j4".parse()?;
    same!(added(world, late).await?, sealed);
    run(world, "j0", true).await?;
    run(world, "j2", true).await?;
    same!(counts(world, "b").await?, (2, 2, 0, BatchState::Succeeded));
    Ok(())
}

/// A batch that does not exist takes no jobs either.
async fn batches_take_nothing_when_they_have_ended(world: &World) -> Outcome {
    let missing = Enqueued::NotInBatch(BatchRefusal::Missing);
    same!(added(world, member(world, "b", "j")?).await?, missing);
    world.unchanged("").await?;
    open(world, "b", &[]).await?;
    seal(world, "b").await?;
    let before = world.all().await?;
    let ended = Enqueued::NotInBatch(BatchRefusal::Ended);
    same!(added(world, member(world, "b", "j")?).await?, ended);
    world.unchanged(&before).await
}

/// The limit is a million jobs.
async fn batches_have_a_limit(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    let key = world.keys().batch(&batch_id("b")?);
    let nearly = (meshwork_model::batch::MAX_MEMBERS - 2).to_string();
    world.raw::<()>(&["HSET", &key, "total", &nearly]).await?;
    let jobs: Got<Vec<_>> = ["j1", "j2", "j3"]
        .map(|id| member(world, "b", id))
        .into_iter()
        .collect();
    let full = Enqueued::NotInBatch(BatchRefusal::Full);
    let answers = world.broker.enqueue(&jobs?).await?;
    same!(answers, [Enqueued::Stored, Enqueued::Stored, full.clone()]);
    same!(added(world, member(world, "b", "j4")?).await?, full);
    same!(world.waiting().await?, ["j1", "j2"]);
    Ok(())
}

/// Its prerequisite failed before the job was added.
async fn batches_count_a_job_that_can_never_run(world: &World) -> Outcome {
    let claimed = world.started("bad").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    open_whole(world, "b").await?;
    let mut job = member(world, "b", "j")?;
    job.depends_on.push("bad".parse()?);
    world.put_jobs(&[job]).await?;
    same!(counts(world, "b").await?, (1, 0, 1, BatchState::Open));
    same!(world.waiting().await?, ["failure"]);
    Ok(())
}

/// A dead letter that is replayed before the batch has ended may still make the batch a success.
async fn batches_count_a_retry_by_hand_again(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2"]).await?;
    seal(world, "b").await?;
    run(world, "j1", false).await?;
    world.broker.retry(&world.read("j1").await?).await?;
    same!(counts(world, "b").await?, (2, 0, 0, BatchState::Sealed));
    run(world, "j2", true).await?;
    world.broker.retry(&world.read("j2").await?).await?;
    same!(counts(world, "b").await?, (2, 0, 0, BatchState::Sealed));
    run(world, "failure", true).await?;
    run(world, "j1", true).await?;
    run(world, "j2", true).await?;
    same!(counts(world, "b").await?, (2, 2, 0, BatchState::Succeeded));
    same!(world.waiting().await?, ["success", "done"]);
    Ok(())
}

/// The retried job no longer affects the batch.
async fn batches_that_have_ended_count_no_retry(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    seal(world, "b").await?;
    run(world, "j", false).await?;
    run(world, "failure", true).await?;
    run(world, "done", true).await?;
    world.pass(1000);
    world.broker.retry(&world.read("j").await?).await?;
    run(world, "j", true).await?;
    let ended = status(world, "b").await?.ended_ms;
    same!(ended, Some(crate::cases::harness::world::START));
    same!(counts(world, "b").await?, (1, 0, 1, BatchState::Failed));
    same!(world.waiting().await?, Vec::<String>::new());
    same!(
        world
            .raw::<u8>(&["EXISTS", &world.keys().members(&batch_id("b")?)])
            .await?,
        0
    );
    Ok(())
}

/// A callback is a job: it can be cancelled and deleted while it waits.
async fn batches_do_without_a_callback_that_was_stopped(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    seal(world, "b").await?;
    world
        .broker
        .cancel(&world.read("done").await?, "no more", false)
        .await?;
    world.broker.delete(&world.read("success").await?).await?;
    // Another job with the id of the callback waits for something else.
    let mut other = world.job("success")?;
    other.depends_on.push("j".parse()?);
    world.put_jobs(&[other]).await?;
    run(world, "j", true).await?;
    same!(counts(world, "b").await?, (1, 1, 0, BatchState::Succeeded));
    same!(world.waiting().await?, ["success"]);
    same!(world.read("success").await?.input, None);
    same!(world.status("done").await?, "error");
    Ok(())
}
