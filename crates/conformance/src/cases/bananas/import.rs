//! import_bananas: imports jobs of Bananas, each in one step; and peek, which finds these jobs.

use meshwork_broker::bananas::Imported;
use meshwork_broker::{Enqueued, Failed};
use meshwork_model::bananas::Bucket;
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Priority;

use super::over::{Both, RECORD, gpu};
use super::{Outcome, World, cases, check, same};
use crate::cases::harness::world::START;

cases![
    a_job_that_waits_is_one_of_ours,
    its_record_there_stays,
    the_next_one_stays_the_next_one,
    what_waits_for_its_time_waits_here,
    a_dead_letter_stays_one,
    its_failures_count,
    what_a_worker_of_ours_has_stays,
    what_a_worker_of_theirs_has_stays,
    what_is_gone_is_left_alone,
    a_repeated_call_changes_nothing,
    what_has_changed_stays,
    what_comes_due_stays,
    what_its_scheduler_has_pushed_just_now_stays,
    what_is_overdue_goes_if_that_is_asked_for,
    a_job_of_its_id_stays_as_it_is,
    a_second_entry_goes,
    of_a_job_that_has_ended_it_stays,
    a_key_of_another_kind_holds_up_no_other,
    a_full_queue_takes_none,
    one_looks_only_so_deep,
    peek_tells_what_is_there,
    peek_passes_over_what_is_no_place,
    peek_tells_what_is_done,
];

/// Its queue follows from its name, its route and its priority.
async fn a_job_that_waits_is_one_of_ours(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    same!(both.take(&list).await?, [Imported::Taken]);
    same!(both.ids_in(&list).await?, Vec::<String>::new());
    same!(both.imported_ids().await?, ["j1"]);
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("count"));
    same!(world.list(&queue).await?, ["j1"]);
    let claimed = both.claim(&queue).await?;
    let job = &claimed.job;
    same!(job.script, b"{\"n\":1}");
    same!((job.attempt, job.retries, job.timeout), (1, 2, 300));
    same!((job.backoff_ms, job.taken_over), (Some(2_000), true));
    same!(job.caller_id, "bananas/count");
    Ok(())
}

/// Clients may ask for the record, and the export needs it.
async fn its_record_there_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    same!(both.side.record("j1").await?.as_deref(), Some(RECORD));
    let kept = world.field("j1", "mw_record").await?;
    same!(kept.as_deref(), Some(RECORD));
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, -1);
    let what: Vec<_> = world
        .events()
        .await?
        .into_iter()
        .map(|[_, what, ..]| what)
        .collect();
    same!(what, ["enqueue", "import"]);
    Ok(())
}

/// The order holds across calls.
async fn the_next_one_stays_the_next_one(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1", "j2", "j3", "j4"]).await?;
    both.take_some(&list, 2).await?;
    same!(both.ids_in(&list).await?, ["j3", "j4"]);
    both.take(&list).await?;
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("count"));
    same!(world.list(&queue).await?, ["j1", "j2", "j3", "j4"]);
    same!(both.imported_ids().await?, ["j1", "j2", "j3", "j4"]);
    Ok(())
}

/// The time is exact to the millisecond.
async fn what_waits_for_its_time_waits_here(world: &World) -> Outcome {
    let both = Both::of(world)?;
    both.later("j1", "1700000020.1235").await?;
    same!(both.take(&Bucket::Later).await?, [Imported::Taken]);
    let left: u8 = world
        .raw(&["EXISTS", &both.side.keys().scheduled()])
        .await?;
    same!(left, 0);
    let delayed = world.keys().delayed();
    let due: Option<u64> = world.raw(&["ZSCORE", &delayed, "j1"]).await?;
    same!(due, Some(1_700_000_020_124));
    same!(world.status("j1").await?, "dispatched");
    Ok(())
}

/// The time of its death is that of its record, but never later than now.
async fn a_dead_letter_stays_one(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let failed = RECORD
        .replace("pending", "failed")
        .replace("\"attempts\":0", "\"attempts\":3,\"error\":\"boom\"");
    let late = failed.replace("2023-11-14", "2029-11-14");
    both.dead("j1", &failed).await?;
    both.dead("j2", &late).await?;
    same!(
        both.take(&Bucket::Dead).await?,
        [Imported::Taken, Imported::Taken]
    );
    same!(both.ids_in(&Bucket::Dead).await?, Vec::<String>::new());
    let dead = world.keys().dead();
    let died: Vec<(String, u64)> = world
        .raw(&["ZRANGE", &dead, "0", "-1", "WITHSCORES"])
        .await?;
    same!(
        died,
        [("j1".to_owned(), START - 20_123), ("j2".to_owned(), START)]
    );
    let job = world.read("j1").await?;
    same!(
        (job.status.as_str(), job.error.as_deref()),
        ("error", Some("boom"))
    );
    same!((job.dead.as_deref(), job.attempt), (Some("failed"), 3));
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("count"));
    same!(world.list(&queue).await?, Vec::<String>::new());
    let figures = world.keys().queue_stats_key(&queue);
    let counts = ["HMGET", &figures, "created", "failed", "dead"];
    same!(world.raw::<Vec<u64>>(&counts).await?, [2; 3]);
    check!(
        world
            .events()
            .await?
            .iter()
            .any(|[job, what, ..]| job == "j1" && what == "enqueue")
    );
    Ok(())
}

/// The job has `max_retries` runs in total, including those in Bananas.
async fn its_failures_count(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let record = RECORD.replace("\"attempts\":0", "\"attempts\":1");
    let list = both.put_text("j1", &record).await?;
    both.take(&list).await?;
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("count"));
    let claimed = both.claim(&queue).await?;
    same!(claimed.job.attempt, 2);
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Requeued
    );
    let claimed = both.claim(&queue).await?;
    same!(
        world.fail(&claimed, FailureKind::Script).await?,
        Failed::Failed
    );
    Ok(())
}

/// A second push does not matter.
async fn what_a_worker_of_ours_has_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    let held = both.side.keys().held();
    world.raw::<()>(&["HSET", &held, "j1", "t1 x"]).await?;
    both.stays(&list, Imported::Runs).await
}

/// The id is in the list of running jobs.
async fn what_a_worker_of_theirs_has_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.side.push(&both.side.keys().processing(), "j1").await?;
    both.stays(&list, Imported::Runs).await
}

/// A worker has claimed the job before.
async fn what_is_gone_is_left_alone(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.later("j2", "1800000000").await?;
    let (waits, later) = (
        both.conversions(&list).await?,
        both.conversions(&Bucket::Later).await?,
    );
    world
        .raw::<()>(&["RPOP", gpu(both.side.keys()).as_str()])
        .await?;
    both.later("j2", "1800000001").await?;
    let before = both.all().await?;
    same!(both.go(&list, &waits).await?, [Imported::Gone]);
    same!(both.go(&Bucket::Later, &later).await?, [Imported::Gone]);
    same!(both.all().await?, before);
    Ok(())
}

/// The call is repeated because its answer was lost.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1", "j2"]).await?;
    let jobs = both.conversions(&list).await?;
    both.go(&list, &jobs).await?;
    let before = both.all().await?;
    same!(
        both.go(&list, &jobs).await?,
        [Imported::Gone, Imported::Gone]
    );
    same!(both.all().await?, before);
    Ok(())
}

/// The record was replaced between the two steps.
async fn what_has_changed_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    let jobs = both.conversions(&list).await?;
    both.side.set(&both.side.keys().job("j1"), "{}").await?;
    let before = both.all().await?;
    same!(both.go(&list, &jobs).await?, [Imported::Changed]);
    same!(both.all().await?, before);
    Ok(())
}

/// Bananas' scheduler may have read the job already, with its own clock.
async fn what_comes_due_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    both.later("j1", "1700000010.123").await?;
    both.stays(&Bucket::Later, Imported::Due).await?;
    both.later("j1", "1700000010.124").await?;
    same!(both.take(&Bucket::Later).await?, [Imported::Taken]);
    Ok(())
}

/// The scheduler removes the id from the delayed ones a moment later.
async fn what_its_scheduler_has_pushed_just_now_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.later("j1", "1700000000").await?;
    both.stays(&list, Imported::Due).await
}

/// The job runs at once.
async fn what_is_overdue_goes_if_that_is_asked_for(world: &World) -> Outcome {
    let both = Both::of(world)?;
    both.later("j1", "1700000000").await?;
    let jobs = both.conversions(&Bucket::Later).await?;
    let outcome = both.go_overdue(&Bucket::Later, &jobs).await?;
    same!(outcome, [Imported::Taken]);
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("count"));
    same!(world.list(&queue).await?, ["j1"]);
    Ok(())
}

/// The state of the existing job does not matter.
async fn a_job_of_its_id_stays_as_it_is(world: &World) -> Outcome {
    let both = Both::of(world)?;
    world.put(&["j1", "j2"]).await?;
    let list = both.put(&["j1"]).await?;
    both.stays(&list, Imported::Refused(Enqueued::Exists))
        .await?;
    both.dead("j2", RECORD).await?;
    both.stays(&Bucket::Dead, Imported::Refused(Enqueued::Exists))
        .await
}

/// Two schedulers of Bananas may push one job twice; it runs once.
async fn a_second_entry_goes(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1", "j1"]).await?;
    same!(both.take(&list).await?, [Imported::Taken, Imported::Twice]);
    same!(both.ids_in(&list).await?, Vec::<String>::new());
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("count"));
    same!(world.list(&queue).await?, ["j1"]);
    Ok(())
}

/// An id may be used again.
async fn of_a_job_that_has_ended_it_stays(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("count"));
    world.finish(&both.claim(&queue).await?, "1").await?;
    both.put(&["j1"]).await?;
    both.stays(&list, Imported::Refused(Enqueued::Exists)).await
}

/// The key is in either system.
async fn a_key_of_another_kind_holds_up_no_other(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let other = RECORD.replace("\"count\"", "\"other\"");
    both.put_text("j1", &other).await?;
    let list = both.put(&["j2"]).await?;
    let queue = format!("{}:group:gpu:prio:2", world.queue_of("other"));
    both.side.set(&queue, "x").await?;
    let outcome = both.take(&list).await?;
    check!(matches!(&outcome[..], [Imported::Odd(_), Imported::Taken]));
    same!(both.ids_in(&list).await?, ["j1"]);
    let there: u8 = world.raw(&["EXISTS", &world.key("j1")]).await?;
    same!(there, 0);
    // If the import cannot be recorded, no job is imported.
    both.side.set(&world.keys().taken_over(), "x").await?;
    both.put(&["j3"]).await?;
    let before = both.all().await?;
    check!(both.take(&list).await.is_err());
    same!(both.all().await?, before);
    Ok(())
}

/// The other jobs stay in Bananas.
async fn a_full_queue_takes_none(world: &World) -> Outcome {
    let both = Both::of(world)?;
    world
        .raw::<()>(&["HSET", &world.keys().config(), "limit", "1"])
        .await?;
    let list = both.put(&["j1", "j2"]).await?;
    let outcome = both.take(&list).await?;
    same!(
        outcome,
        [Imported::Taken, Imported::Refused(Enqueued::Full)]
    );
    same!(both.ids_in(&list).await?, ["j2"]);
    Ok(())
}

/// A walk through a long list would block the server.
async fn one_looks_only_so_deep(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1", "j2", "j3"]).await?;
    let jobs = both.conversions(&list).await?;
    same!(both.go_deep(&list, &jobs[2..], 2).await?, [Imported::Gone]);
    same!(both.go_deep(&list, &jobs[2..], 3).await?, [Imported::Taken]);
    same!(both.ids_in(&list).await?, ["j1", "j2"]);
    Ok(())
}

/// The answer begins with the next job, after this many.
async fn peek_tells_what_is_there(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1", "j2", "j3"]).await?;
    both.later("l2", "2").await?;
    both.later("l1", "1").await?;
    let verbs = &both.side.verbs;
    let outcome = async |place: &Bucket, behind, most| {
        let (all, jobs) = verbs.peek(place, behind, most).await?;
        let job = |job: meshwork_broker::bananas::PeekedJobs| {
            (String::from_utf8_lossy(&job.id).into_owned(), job.time)
        };
        Ok::<_, super::Failure>((all, jobs.into_iter().map(job).collect::<Vec<_>>()))
    };
    let of = |jobs: &[(&str, &str)]| -> Vec<(String, String)> {
        let own = |(id, time): &(&str, &str)| ((*id).to_owned(), (*time).to_owned());
        jobs.iter().map(own).collect()
    };
    same!(
        outcome(&list, 0, 2).await?,
        (3, of(&[("j1", ""), ("j2", "")]))
    );
    same!(outcome(&list, 2, 2).await?, (3, of(&[("j3", "")])));
    same!(outcome(&list, 3, 2).await?, (3, Vec::new()));
    same!(
        outcome(&Bucket::Later, 0, 2).await?,
        (2, of(&[("l1", "1"), ("l2", "2")]))
    );
    same!(
        outcome(&Bucket::Later, 1, 2).await?,
        (2, of(&[("l2", "2")]))
    );
    Ok(())
}

/// The key is no list, or does not exist.
async fn peek_passes_over_what_is_no_place(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let keys = both.side.keys();
    let list = Bucket::List(keys.plain(Priority::High));
    same!(both.side.verbs.peek(&list, 0, 9).await?.0, 0);
    both.side.set(&keys.plain(Priority::High), "x").await?;
    same!(both.side.verbs.peek(&list, 0, 9).await?.0, 0);
    Ok(())
}

/// A worker drops a job by the same rule.
async fn peek_tells_what_is_done(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1", "j2"]).await?;
    let (key, at) = (both.side.keys().result("j2"), "2099-01-01T00:00:00Z");
    let result = ["HSET", &key, "status", "completed", "completed_at", at];
    world.raw::<()>(&result).await?;
    let record = "{\"updated_at\":\"2023-11-14T22:13:20Z\"}";
    both.side.set(&both.side.keys().job("j2"), record).await?;
    let (_, jobs) = both.side.verbs.peek(&list, 0, 9).await?;
    let done: Vec<_> = jobs.iter().map(|job| job.is_done()).collect();
    same!(done, [false, true]);
    same!(jobs[1].done_at.as_deref(), Some(at));
    Ok(())
}
