//! Stop requests for running jobs: the worker receives the request through the control queue of its type and with
//! each renewal. The job does not run again, whatever the end of the run.

use meshwork_broker::{Cancelled, Claimed, Completed, Failed, Released};
use meshwork_model::job::Job;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::legacy_worker;
use crate::cases::harness::world::{LEASE, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    the_worker_is_asked,
    said_twice_it_asks_once,
    force_ends_it_all_the_same,
    the_renewal_says_it_too,
    a_run_without_a_lease_is_stopped_by_its_old_queue,
    instances_without_a_lease_are_asked,
    the_instance_that_it_was_sent_to_is_asked,
    a_worker_with_a_lease_has_no_stop_queue,
    a_request_that_nobody_takes_ends,
    what_others_asked_does_not_end,
    a_job_that_waits_ends_at_once,
    a_result_that_was_quicker_counts,
    a_failure_is_not_retried,
    a_job_handed_back_ends,
    a_job_whose_worker_is_gone_ends,
    whoever_asks_for_it_again_is_not_stopped,
    a_control_queue_that_is_no_list_is_no_hindrance,
    no_old_worker_runs_what_was_stopped,
    an_old_list_that_is_no_list_is_no_hindrance,
    old_lists_of_jobs_that_we_know_are_not_walked,
];

fn control(world: &World) -> Result<String, Failure> {
    Ok(world.keys().control_queue_type(&"osis".parse()?))
}

/// Starts a job with retries, and requests its stop.
async fn stopping(world: &World) -> Result<Claimed, Failure> {
    let mut job = world.job("j1")?;
    (job.retries, job.reply) = (5, true);
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let said = world.broker.cancel(&claimed.job, "enough", false).await?;
    same!(said, Cancelled::Stopping);
    Ok(claimed)
}

/// Checks that it ended in error with the given reason, for good, and is no dead letter.
async fn ended(world: &World, why: &str) -> Outcome {
    let record = world.record("j1").await?;
    let of = |name: &str| record.get(name).map(String::as_str);
    same!((of("status"), of("error")), (Some("error"), Some(why)));
    same!((of("mw_stop"), of("mw_dead")), (None, None));
    same!(world.lease("j1").await?, None);
    same!(world.list(&world.reply("j1")).await?, [why]);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// The job runs until its worker stops it.
async fn the_worker_is_asked(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let (record, lease) = (world.record("j1").await?, world.lease("j1").await?);
    let who = world.broker.clone().acting_as("alice");
    let said = who.cancel(&claimed.job, "enough", false).await?;
    same!(said, Cancelled::Stopping);
    same!(world.list(&control(world)?).await?, ["j1"]);
    let mut now = world.record("j1").await?;
    same!(now.remove("mw_stop").as_deref(), Some("enough"));
    same!(now.remove("mw_with").as_deref(), Some("1"));
    same!(now, record);
    same!(world.lease("j1").await?, lease);
    let event = ["j1", "stop", "alice", "enough"].map(str::to_owned);
    same!(world.events().await?.pop(), Some(event));
    Ok(())
}

/// The first reason stays.
async fn said_twice_it_asks_once(world: &World) -> Outcome {
    let claimed = stopping(world).await?;
    let before = world.all().await?;
    world.pass(1);
    let said = world.broker.cancel(&claimed.job, "again", false).await?;
    same!(said, Cancelled::Stopping);
    world.unchanged(&before).await
}

/// Its worker may hang.
async fn force_ends_it_all_the_same(world: &World) -> Outcome {
    let claimed = stopping(world).await?;
    let said = world.broker.cancel(&claimed.job, "now", true).await?;
    same!(said, Cancelled::Cancelled);
    ended(world, "now").await?;
    same!(world.renew(WORKER, &[claimed]).await?, ["j1"]);
    Ok(())
}

/// A lost request reaches the worker with the renewal.
async fn the_renewal_says_it_too(world: &World) -> Outcome {
    world.put(&["j0"]).await?;
    let other = world.take_one().await?;
    let claimed = stopping(world).await?;
    let renewed = world.try_renew(WORKER, &[other, claimed]).await?;
    same!(
        (renewed.gone.len(), renewed.stop),
        (0, vec!["j1".to_owned()])
    );
    let until = crate::cases::harness::world::START + LEASE.as_millis() as u64;
    same!(world.lease("j1").await?, Some(until));
    Ok(())
}

/// The run is one of Hero.
async fn a_run_without_a_lease_is_stopped_by_its_old_queue(world: &World) -> Outcome {
    let fields = [
        ("status", "started"),
        ("worker_id", "old-1"),
        ("script_type", "osis"),
    ];
    world.put_foreign("j1", &fields).await?;
    let job = world.read("j1").await?;
    same!(
        world.broker.cancel(&job, "enough", false).await?,
        Cancelled::Stopping
    );
    let queue = world.keys().legacy_stop_queue(&"old-1".parse()?);
    same!(world.list(&queue).await?, ["j1"]);
    // Hero's worker may have the name of an old one.
    same!(world.list(&control(world)?).await?, ["j1"]);
    Ok(())
}

/// Creates a run of a worker without leases, which the record does not name.
async fn foreign(world: &World, id: &str, more: &[(&str, &str)]) -> Result<Job, Failure> {
    let fields = [("status", "started"), ("script_type", "osis")];
    world.put_foreign(id, &[&fields[..], more].concat()).await?;
    world.read(id).await
}

/// Returns the control queue of an instance.
fn of_instance(world: &World, instance: &str) -> Result<String, Failure> {
    let (group, instance) = ("default".parse()?, instance.parse()?);
    let keys = world.keys();
    Ok(keys.control_queue_instance(&"osis".parse()?, &group, &instance))
}

/// Instances of that type with a registered presence receive the request; no stop queue has an empty name.
async fn instances_without_a_lease_are_asked(world: &World) -> Outcome {
    for name in ["osis:default:1", "osis:default:2", "v:default:1"] {
        let key = format!("{}{name}", world.keys().presence_prefix());
        world.raw::<()>(&["SET", &key, "{}", "EX", "60"]).await?;
    }
    let job = foreign(world, "j1", &[]).await?;
    let said = world.broker.cancel_anywhere(&job, "enough", false).await?;
    same!(said, Cancelled::Stopping);
    let queues = [
        control(world)?,
        of_instance(world, "1")?,
        of_instance(world, "2")?,
    ];
    for queue in &queues {
        same!(
            (queue, world.list(queue).await?),
            (queue, vec!["j1".to_owned()])
        );
    }
    let prefix = format!("{}:*", world.keys().namespace());
    let requests: Vec<String> = world.raw(&["KEYS", &prefix]).await?;
    let requests = requests
        .iter()
        .filter(|key| key.contains(":ctl:") || key.contains(":stop_queue"));
    same!(requests.count(), queues.len());
    // A worker with a lease is one of Meshwork's, which reads the queue of its type.
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    let claimed = world.started("j2").await?;
    let said = world
        .broker
        .cancel_anywhere(&claimed.job, "enough", false)
        .await?;
    same!(said, Cancelled::Stopping);
    same!(world.list(&queues[0]).await?, ["j1", "j2"]);
    same!(world.list(&queues[1]).await?, ["j1"]);
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    Ok(())
}

/// The instance receives the request once, with or without a registered presence.
async fn the_instance_that_it_was_sent_to_is_asked(world: &World) -> Outcome {
    let queue = format!("{}:group:default:inst:3", world.queue());
    let third = of_instance(world, "3")?;
    for (id, queue) in [("j1", queue.clone()), ("j2", format!("{queue}:prio:0"))] {
        let job = foreign(world, id, &[("mw_queue", &queue)]).await?;
        world.broker.cancel(&job, "enough", false).await?;
        same!(world.list(&third).await?, [id]);
        world.raw::<()>(&["DEL", &third, &control(world)?]).await?;
    }
    let key = format!("{}osis:default:3", world.keys().presence_prefix());
    world.raw::<()>(&["SET", &key, "{}", "EX", "60"]).await?;
    let job = foreign(world, "j3", &[("mw_queue", &queue)]).await?;
    world.broker.cancel_anywhere(&job, "enough", false).await?;
    same!(world.list(&third).await?, ["j3"]);
    world.raw::<()>(&["DEL", &control(world)?]).await?;
    let job = foreign(world, "j4", &[("mw_queue", &world.queue())]).await?;
    world.broker.cancel(&job, "enough", false).await?;
    same!(world.list(&control(world)?).await?, ["j4"]);
    Ok(())
}

/// It reads the queue of its type, whatever name the job's client gave.
async fn a_worker_with_a_lease_has_no_stop_queue(world: &World) -> Outcome {
    let fields = [
        ("script_type", "osis"),
        ("worker_id", "old-1"),
        ("script", "1"),
    ];
    world.put_foreign("j1", &fields).await?;
    let claimed = world.take_one().await?;
    let said = world.broker.cancel(&claimed.job, "enough", false).await?;
    same!(said, Cancelled::Stopping);
    same!(world.list(&control(world)?).await?, ["j1"]);
    let queue = world.keys().legacy_stop_queue(&"old-1".parse()?);
    check!(world.list(&queue).await?.is_empty());
    Ok(())
}

async fn a_request_that_nobody_takes_ends(world: &World) -> Outcome {
    let left = async || world.raw::<i64>(&["PTTL", &control(world)?]).await;
    let job = foreign(world, "j1", &[]).await?;
    world.broker.cancel(&job, "enough", false).await?;
    check!((50_000..=60_000).contains(&left().await?));
    // The later request waits as long.
    world
        .raw::<()>(&["PEXPIRE", &control(world)?, "20000"])
        .await?;
    let job = foreign(world, "j2", &[]).await?;
    world.broker.cancel(&job, "enough", false).await?;
    check!((50_000..=60_000).contains(&left().await?));
    Ok(())
}

async fn what_others_asked_does_not_end(world: &World) -> Outcome {
    world
        .raw::<()>(&["LPUSH", &control(world)?, "of-others"])
        .await?;
    let job = foreign(world, "j1", &[]).await?;
    world.broker.cancel(&job, "enough", false).await?;
    same!(world.list(&control(world)?).await?, ["of-others", "j1"]);
    same!(world.raw::<i64>(&["PTTL", &control(world)?]).await?, -1);
    Ok(())
}

/// No worker needs the request.
async fn a_job_that_waits_ends_at_once(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    let job = world.read("j1").await?;
    let said = world.broker.cancel(&job, "enough", false).await?;
    same!(said, Cancelled::Cancelled);
    ended(world, "enough").await?;
    check!(world.list(&control(world)?).await?.is_empty());
    Ok(())
}

/// The result exists.
async fn a_result_that_was_quicker_counts(world: &World) -> Outcome {
    let claimed = stopping(world).await?;
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    same!(world.status("j1").await?, "finished");
    same!(world.field("j1", "mw_stop").await?, None);
    Ok(())
}

/// The kind of the failure and its message do not matter.
async fn a_failure_is_not_retried(world: &World) -> Outcome {
    for kind in [FailureKind::Script, FailureKind::Stopped] {
        let claimed = stopping(world).await?;
        same!(world.fail(&claimed, kind).await?, Failed::Failed);
        ended(world, "boom").await?;
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// Its worker shut down before it could stop the job.
async fn a_job_handed_back_ends(world: &World) -> Outcome {
    let claimed = stopping(world).await?;
    same!(world.broker.release(&claimed).await?, Released::Released);
    same!(world.read("j1").await?.attempt, 0);
    ended(world, "enough").await
}

/// No other worker takes it.
async fn a_job_whose_worker_is_gone_ends(world: &World) -> Outcome {
    stopping(world).await?;
    let back = world.lose_all().await?;
    same!(
        (back.requeued.len(), back.ended),
        (0, vec!["j1".to_owned()])
    );
    ended(world, "enough").await
}

/// The request was for the earlier run.
async fn whoever_asks_for_it_again_is_not_stopped(world: &World) -> Outcome {
    let claimed = stopping(world).await?;
    world
        .raw::<()>(&["ZADD", &world.named("STOPS")?, "1", "j1"])
        .await?;
    world.finish(&claimed, "42").await?;
    world.broker.retry(&world.read("j1").await?).await?;
    check!(world.list(&control(world)?).await?.is_empty());
    same!(
        world
            .raw::<usize>(&["EXISTS", &world.named("STOPS")?])
            .await?,
        0
    );
    let claimed = world.take_one().await?;
    check!(world.try_renew(WORKER, &[claimed]).await?.stop.is_empty());
    Ok(())
}

/// The renewal has the request.
async fn a_control_queue_that_is_no_list_is_no_hindrance(world: &World) -> Outcome {
    world.raw::<()>(&["SET", &control(world)?, "x"]).await?;
    let claimed = stopping(world).await?;
    same!(world.try_renew(WORKER, &[claimed]).await?.stop, ["j1"]);
    Ok(())
}

/// A job on an old list only is removed from it, since old workers read no status. Its client gets the reply where it
/// waits. The worker may be in either spelling, and each of the old patterns may be its list.
async fn no_old_worker_runs_what_was_stopped(world: &World) -> Outcome {
    for (k, list) in ["actor_queue:osis", "w1"]
        .into_iter()
        .map(|n| world.key(n))
        .chain([old_work(world)?])
        .enumerate()
    {
        for (spelling, bare) in [("worker_id", false), ("actor_id", true)] {
            let id = format!("{k}-{spelling}");
            legacy_worker::write(
                world,
                &id,
                &[
                    "status",
                    "dispatched",
                    "script_type",
                    "OSIS",
                    spelling,
                    "w1",
                ],
            )
            .await?;
            world
                .raw::<()>(&["RPUSH", &list, "other", &id, "other"])
                .await?;
            if bare {
                world.raw::<()>(&["LPUSH", &control(world)?, &id]).await?;
                crate::cases::maintenance::control::ask(world, WORKER, &[]).await?;
            } else {
                let said = world
                    .broker
                    .cancel(&world.read(&id).await?, "enough", false)
                    .await?;
                same!(said, Cancelled::Cancelled);
            }
            same!(world.status(&id).await?, "error");
            same!(
                (&id, world.list(&list).await?),
                (&id, vec!["other".into(), "other".into()])
            );
            let job = id.parse()?;
            same!(
                world
                    .list(&world.keys().legacy_reply_queue(&job))
                    .await?
                    .len(),
                1
            );
            same!(world.list(&world.reply(&id)).await?.len(), 0);
            same!(world.field(&id, "mw_legacy").await?, Some("1".into()));
            world.raw::<()>(&["DEL", &list]).await?;
        }
    }
    Ok(())
}

fn old_work(world: &World) -> Result<String, Failure> {
    Ok(world.keys().legacy_work_queue(&"w1".parse()?))
}

async fn an_old_list_that_is_no_list_is_no_hindrance(world: &World) -> Outcome {
    legacy_worker::write(world, "j1", &["status", "dispatched", "worker_id", "w1"]).await?;
    world.raw::<()>(&["SET", &old_work(world)?, "x"]).await?;
    let said = world
        .broker
        .cancel(&world.read("j1").await?, "enough", false)
        .await?;
    same!(said, Cancelled::Cancelled);
    same!(world.field("j1", "mw_legacy").await?, None);
    same!(world.list(&world.reply("j1")).await?, ["enough"]);
    Ok(())
}

/// A Meshwork job, and one that ran on Meshwork, wait in the queue of their records.
async fn old_lists_of_jobs_that_we_know_are_not_walked(world: &World) -> Outcome {
    for (id, field, value) in [("j1", "mw_queue", &*world.queue()), ("j2", "mw_reply", "1")] {
        legacy_worker::put_old(world, id, &[field, value]).await?;
        world
            .broker
            .cancel(&world.read(id).await?, "enough", false)
            .await?;
        same!(world.list(&legacy_worker::old(world)).await?, [id]);
        world
            .raw::<()>(&["DEL", &legacy_worker::old(world)])
            .await?;
    }
    Ok(())
}
