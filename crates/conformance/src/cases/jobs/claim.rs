//! claim: pops ids and makes them this worker's jobs, each under a lease, in one step.

use std::time::Duration;

use meshwork_broker::{Claim, Error, MAX_ITEMS, PrefetchLists};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::{LEASE, LEASE_MS, START, WORKER, ids};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    takes_as_many_as_there_are_slots,
    takes_what_there_is,
    pops_the_id,
    leaves_an_empty_queue_alone,
    takes_nothing_without_a_slot,
    refuses_more_than_a_thousand,
    puts_each_job_under_a_lease,
    lease_is_as_long_as_asked_for,
    counts_the_attempt,
    writes_the_fencing_token,
    says_who_has_the_job_and_from_where,
    returns_the_records,
    returns_the_records_of_others,
    never_runs_a_job_beside_itself,
    never_runs_an_ended_job,
    drops_ids_without_a_job,
    tells_whether_it_stopped_at_its_bound,
    two_workers_share_no_job,
    passes_over_a_queue_that_is_no_list,
];

/// A claim takes no more jobs than there are free slots; the others go on waiting.
async fn takes_as_many_as_there_are_slots(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3", "j4", "j5"]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 3).await?;
    same!(ids(&taken.jobs), ["j1", "j2", "j3"]);
    same!((taken.dropped, taken.more), (0, false));
    same!(world.waiting().await?, ["j4", "j5"]);
    same!(world.status("j4").await?, "dispatched");
    Ok(())
}

/// A claim takes fewer jobs if the queue has fewer.
async fn takes_what_there_is(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    let jobs = world.take(10).await?;
    same!(ids(&jobs), ["j1", "j2"]);
    Ok(())
}

/// A claimed id is no longer in a queue.
async fn pops_the_id(world: &World) -> Outcome {
    world.started("j1").await?;
    check!(world.waiting().await?.is_empty());
    check!(world.take(1).await?.is_empty());
    Ok(())
}

/// A claim of an empty queue writes nothing.
async fn leaves_an_empty_queue_alone(world: &World) -> Outcome {
    check!(world.take(10).await?.is_empty());
    world.unchanged("").await
}

/// A full worker takes no job.
async fn takes_nothing_without_a_slot(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let before = world.all().await?;
    check!(world.take(0).await?.is_empty());
    world.unchanged(&before).await
}

/// A bound keeps calls from blocking the server.
async fn refuses_more_than_a_thousand(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let before = world.all().await?;
    let claim = Claim {
        queues: &[world.queue()],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: MAX_ITEMS + 1,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: "t",
    };
    let refused = world.broker.claim(claim).await;
    check!(matches!(refused, Err(Error::TooMany { verb: "claim", .. })));
    world.unchanged(&before).await
}

/// Each claimed job is in the lease set with the expiry of its lease.
async fn puts_each_job_under_a_lease(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    world.pass(7);
    world.take(2).await?;
    for id in ["j1", "j2"] {
        same!(world.lease(id).await?, Some(START + 7 + LEASE_MS));
    }
    same!(world.lease("j3").await?, None);
    same!(world.broker.running().await?, 2);
    Ok(())
}

/// The worker chooses the duration of the lease.
async fn lease_is_as_long_as_asked_for(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let claim = Claim {
        queues: &[world.queue()],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: Duration::from_millis(1_234),
        worker: WORKER,
        token: "t",
    };
    world.broker.claim(claim).await?;
    same!(world.lease("j1").await?, Some(START + 1_234));
    Ok(())
}

/// Each started run is counted, and the worker receives the number.
async fn counts_the_attempt(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 2;
    world.put_jobs(&[job]).await?;
    for attempt in 1..=3 {
        let claimed = world.take_one().await?;
        same!(claimed.job.attempt, attempt);
        same!(world.read("j1").await?.attempt, attempt);
        world.fail(&claimed, FailureKind::Script).await?;
    }
    Ok(())
}

/// The token of the current claim is in the record, and each claim has its own.
async fn writes_the_fencing_token(world: &World) -> Outcome {
    let first = world.started("j1").await?;
    same!(
        world.field("j1", "mw_token").await?.as_ref(),
        Some(&first.token)
    );
    world.lose_all().await?;
    let second = world.take_one().await?;
    check!(first.token != second.token);
    same!(
        world.field("j1", "mw_token").await?.as_ref(),
        Some(&second.token)
    );
    Ok(())
}

/// The record has the worker of the job, and the queue to which it returns.
async fn says_who_has_the_job_and_from_where(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let queues = [world.queue_of("osis:group:default"), world.queue()];
    let taken = world.claim("w9-x", &queues, 1).await?;
    same!(taken.jobs.len(), 1);
    same!(taken.jobs[0].queue, world.queue());
    let job = world.read("j1").await?;
    same!(job.worker.as_deref(), Some("w9-x"));
    same!(job.queue, Some(world.queue()));
    Ok(())
}

/// The worker gets the whole record in the same call, with any bytes unchanged.
async fn returns_the_records(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.script = "40 + 2".to_owned();
    job.input = Some((0..=255).collect());
    job.caller_id = "ä".to_owned();
    job.env_vars.insert("A".to_owned(), "1".to_owned());
    job.retries = 4;
    job.timeout = 77;
    world.put_jobs(std::slice::from_ref(&job)).await?;
    let claimed = world.take_one().await?;
    same!(claimed.job.script, job.script.as_bytes());
    same!(claimed.job.input, job.input);
    same!(claimed.job.caller_id, job.caller_id);
    same!(claimed.job.env_vars, job.env_vars);
    same!((claimed.job.retries, claimed.job.timeout), (4, 77));
    same!(claimed.job.route(), Some(job.route));
    let mut plain = world.job("j2")?;
    (plain.caller_id, plain.context_id) = ("alice".to_owned(), "home".to_owned());
    (plain.retries, plain.timeout) = (3, 78);
    world.put_jobs(std::slice::from_ref(&plain)).await?;
    let claimed = world.take_one().await?;
    same!(claimed.job.script, plain.script.as_bytes());
    same!(
        (&claimed.job.caller_id, &claimed.job.context_id),
        (&plain.caller_id, &plain.context_id)
    );
    same!((claimed.job.retries, claimed.job.timeout), (3, 78));
    same!(claimed.job.route(), Some(plain.route));
    Ok(())
}

/// The foreign record has as many fields as one of Meshwork, but other ones.
async fn returns_the_records_of_others(world: &World) -> Outcome {
    let own = ["status", "script", "script_type", "caller_id", "env_vars"];
    let values = ["dispatched", "1", "osis", "bob", r#"{"A":"1"}"#];
    let more: Vec<_> = (0..8).map(|n| format!("x{n}")).collect();
    let fields = own.into_iter().zip(values);
    let fields: Vec<_> = fields
        .chain(more.iter().map(|name| (name.as_str(), "y")))
        .collect();
    world.put_foreign("j1", &fields).await?;
    let claimed = world.take_one().await?;
    same!(
        (
            claimed.job.script.as_slice(),
            claimed.job.caller_id.as_str()
        ),
        (b"1".as_slice(), "bob")
    );
    same!(claimed.job.env_vars.get("A").map(String::as_str), Some("1"));
    Ok(())
}

/// An id that is pushed again while its job runs is dropped, in any queue.
async fn never_runs_a_job_beside_itself(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    world.push("j1").await?;
    let other = world.queue_of("osis:group:default");
    world.raw::<()>(&["LPUSH", &other, "j1"]).await?;
    let taken = world.claim(WORKER, &[world.queue(), other], 5).await?;
    same!((ids(&taken.jobs), taken.dropped), (vec!["j1"], 2));
    world.push("j1").await?;
    let before = world.record("j1").await?;
    let taken = world.claim("w2-b", &[world.queue()], 5).await?;
    same!((taken.jobs.len(), taken.dropped), (0, 1));
    same!(world.record("j1").await?, before);
    same!(world.read("j1").await?.attempt, 1);
    Ok(())
}

/// An id whose job has ended is dropped, and the job stays unchanged.
async fn never_runs_an_ended_job(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    let claimed = world.started("j2").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    // A foreign worker ended the job, and wrote nothing else.
    world.put(&["j3"]).await?;
    world
        .raw::<()>(&["HSET", &world.key("j3"), "status", "finished"])
        .await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    let before = world.all().await?;
    world.pass(1);
    for id in ["j1", "j2", "j3"] {
        world.push(id).await?;
    }
    let taken = world.claim(WORKER, &[world.queue()], 5).await?;
    same!((taken.jobs.len(), taken.dropped), (0, 3));
    world.unchanged(&before).await
}

/// An id without a job is dropped and takes no slot.
async fn drops_ids_without_a_job(world: &World) -> Outcome {
    for id in ["ghost", "spook"] {
        world.push(id).await?;
    }
    world.put(&["j1"]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 1).await?;
    same!((ids(&taken.jobs), taken.dropped), (vec!["j1"], 2));
    same!(world.lease("ghost").await?, None);
    check!(world.record("ghost").await?.is_empty());
    Ok(())
}

/// A call reads at most 1,000 ids, and reports when it stopped there.
async fn tells_whether_it_stopped_at_its_bound(world: &World) -> Outcome {
    let queue = world.queue();
    let ghosts: Vec<_> = (0..1500).map(|n| format!("g{n}")).collect();
    let mut push = vec!["LPUSH", &queue];
    push.extend(ghosts.iter().map(String::as_str));
    world.raw::<()>(&push).await?;
    world.put(&["j1"]).await?;
    let first = world.claim(WORKER, &[world.queue()], 2).await?;
    same!(
        (first.jobs.len(), first.dropped, first.more),
        (0, 1000, true)
    );
    let second = world.claim(WORKER, &[world.queue()], 2).await?;
    same!((ids(&second.jobs), second.dropped), (vec!["j1"], 500));
    check!(!second.more);
    Ok(())
}

/// Workers that claim one after the other get different jobs.
async fn two_workers_share_no_job(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let one = world.claim("w1-a", &[world.queue()], 2).await?;
    let two = world.claim("w2-b", &[world.queue()], 2).await?;
    same!(ids(&one.jobs), ["j1", "j2"]);
    same!(ids(&two.jobs), ["j3"]);
    Ok(())
}

/// A key of another type instead of a queue does not block the other queues, and no claimed job is lost because of
/// it.
async fn passes_over_a_queue_that_is_no_list(world: &World) -> Outcome {
    let (first, last) = (world.queue_of("osis:group:io"), world.queue_of("sal"));
    let mut jobs = [world.job("j1")?, world.job("j2")?];
    jobs[0].route.group = Some("io".parse()?);
    jobs[1].route.script_type = "sal".parse()?;
    world.put_jobs(&jobs).await?;
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    let taken = world
        .claim(WORKER, &[first, world.queue(), last], 3)
        .await?;
    same!(ids(&taken.jobs), ["j1", "j2"]);
    Ok(())
}
