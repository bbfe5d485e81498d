//! Keys of another type in place of Meshwork's: auxiliary keys block no job, and where a key is needed, nothing is
//! lost.

use std::time::Duration;

use meshwork_broker::{
    Cancelled, Completed, Controlled, Deleted, Failed, Listener, Released, Retried,
};
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::dependencies::prerequisites::{put_after, run, waits};
use crate::cases::harness::world::{ALIVE_MS, WORKER, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    jobs_live_and_end_without_what_only_helps,
    dependants_are_told_without_what_only_helps,
    a_reply_that_cannot_be_given_is_no_hindrance,
    who_waits_for_whom_may_be_unknown,
    no_id_is_taken_where_no_lease_can_be_given,
    one_job_does_not_keep_the_others_from_renewal,
    a_renewal_without_listeners_keeps_the_leases,
    surplus_of_a_queue_that_is_no_list_stays,
    a_leaving_worker_hands_back_the_rest,
    a_dead_listeners_other_ids_go_back,
    counters_that_are_no_numbers_are_none,
    settings_of_another_type_keep_no_worker_from_its_poll,
    keys_of_another_type_move_away_if_they_are_found_again,
];

/// Keys that the scripts can do without.
const HELPERS: [&str; 8] = [
    "EVENTS",
    "ENDED",
    "DEAD",
    "WATCHED",
    "DELAYED",
    "UNRESOLVED",
    "CONFIG",
    "STOPS",
];

async fn spoil(world: &World, key: &str) -> Outcome {
    world.raw(&["SET", key, "x"]).await
}

async fn spoilt(world: &World, key: &str) -> Outcome {
    same!(world.raw::<String>(&["GET", key]).await?, "x");
    Ok(())
}

/// Runs a job through all its verbs.
async fn live(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    (job.retries, job.reply) = (2, true);
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let failure = Wrong::new(FailureKind::Script, "boom");
    let said = world
        .broker
        .fail(&claimed, &failure, b"", b"", Duration::ZERO);
    same!(said.await?, Failed::Requeued);
    let claimed = world.take_one().await?;
    same!(world.broker.release(&claimed).await?, Released::Released);
    world.take_one().await?;
    same!(world.lose_all().await?.requeued, ["j1"]);
    let claimed = world.take_one().await?;
    same!(world.finish(&claimed, "42").await?, Completed::Finished);
    same!(world.list(&world.reply("j1")).await?, ["42"]);
    same!(
        world.broker.retry(&world.read("j1").await?).await?,
        Retried::Queued
    );
    let claimed = world.take_one().await?;
    let said = world.fail(&claimed, FailureKind::Permanent).await?;
    same!(said, Failed::Failed);
    same!(
        world.broker.retry(&world.read("j1").await?).await?,
        Retried::Queued
    );
    let job = world.read("j1").await?;
    let said = world.broker.cancel(&job, "stopped", false).await?;
    same!(said, Cancelled::Cancelled);
    same!(world.list(&world.reply("j1")).await?, ["stopped"]);
    same!(world.broker.delete(&job).await?, Deleted::Deleted);
    Ok(())
}

/// A failure whose pause cannot be stored is retried at once.
async fn jobs_live_and_end_without_what_only_helps(world: &World) -> Outcome {
    for name in HELPERS {
        let key = world.named(name)?;
        spoil(world, &key).await?;
        live(world)
            .await
            .map_err(|why| Failure::new(format!("{name}: {why}")))?;
        let mut job = world.job("j2")?;
        job.retries = 1;
        world.put_jobs(&[job]).await?;
        let claimed = world.take_one().await?;
        let failure = Wrong::new(FailureKind::Script, "boom");
        let delay = Duration::from_secs(5);
        world
            .broker
            .fail(&claimed, &failure, b"", b"", delay)
            .await?;
        let waiting = world.waiting().await?;
        same!(
            (name, waiting.len()),
            (name, usize::from(name == "DELAYED"))
        );
        spoilt(world, &key).await?;
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// The call that ends the prerequisite notifies these.
async fn dependants_are_told_without_what_only_helps(world: &World) -> Outcome {
    for name in HELPERS {
        let key = world.named(name)?;
        spoil(world, &key).await?;
        world.put(&["first", "second"]).await?;
        put_after(world, "a", &["first"]).await?;
        put_after(world, "b", &["second"]).await?;
        check!(waits(world, "a").await?);
        run(world, "first", true).await?;
        run(world, "second", false).await?;
        same!((name, world.waiting().await?), (name, vec!["a".to_owned()]));
        same!((name, world.status("b").await?), (name, "error".to_owned()));
        spoilt(world, &key).await?;
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// The record decides.
async fn a_reply_that_cannot_be_given_is_no_hindrance(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    put_after(world, "child", &["j1"]).await?;
    spoil(world, &world.reply("j1")).await?;
    run(world, "j1", true).await?;
    same!(world.status("j1").await?, "finished");
    same!(world.waiting().await?, ["child"]);
    spoilt(world, &world.reply("j1")).await?;
    let ttl: i64 = world.raw(&["PTTL", &world.reply("j1")]).await?;
    same!(ttl, -1);
    Ok(())
}

/// The timeout then ends the waiting job; the other one ends as it should.
async fn who_waits_for_whom_may_be_unknown(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    spoil(world, &format!("{}first", world.named("DEPENDENTS")?)).await?;
    put_after(world, "child", &["first"]).await?;
    check!(waits(world, "child").await?);
    let watched: Option<u64> = world
        .raw(&["ZSCORE", &world.keys().watch(), "child"])
        .await?;
    check!(watched.is_some());
    run(world, "first", true).await?;
    same!(world.status("first").await?, "finished");
    check!(!world.broker.resolve_dependents().await?);
    world.broker.delete(&world.read("first").await?).await?;
    check!(!world.broker.resolve_dependents().await?);
    Ok(())
}

/// Neither the id nor its place in the queue is lost.
async fn no_id_is_taken_where_no_lease_can_be_given(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    spoil(world, &world.keys().lease()).await?;
    let before = world.all().await?;
    check!(world.take(1).await.is_err());
    world.unchanged(&before).await?;
    world.raw::<()>(&["DEL", &world.keys().lease()]).await?;
    let claimed = world.take_one().await?;
    spoil(world, &world.keys().lease()).await?;
    let before = world.all().await?;
    check!(world.finish(&claimed, "42").await.is_err());
    check!(world.fail(&claimed, FailureKind::Script).await.is_err());
    check!(world.broker.release(&claimed).await.is_err());
    check!(
        world
            .broker
            .cancel(&claimed.job, "stop", true)
            .await
            .is_err()
    );
    check!(world.broker.delete(&claimed.job).await.is_err());
    check!(world.broker.reclaim().await.is_err());
    world.unchanged(&before).await
}

/// The record of one job was replaced by a list.
async fn one_job_does_not_keep_the_others_from_renewal(world: &World) -> Outcome {
    world.put(&["odd", "j1"]).await?;
    let held = world.take(2).await?;
    world.raw::<()>(&["DEL", &world.key("odd")]).await?;
    world.raw::<()>(&["LPUSH", &world.key("odd"), "x"]).await?;
    world.pass(1_000);
    let before = world.lease("odd").await?;
    same!(world.renew(WORKER, &held).await?, ["odd"]);
    same!(world.lease("odd").await?, before);
    same!(world.lease("j1").await?, before.map(|at| at + 1_000));
    Ok(())
}

/// The answer has the error.
async fn a_renewal_without_listeners_keeps_the_leases(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let before = world.lease("j1").await?;
    spoil(world, &world.keys().prefetch_registry()).await?;
    world.pass(1_000);
    check!(world.try_renew(WORKER, &[claimed]).await.is_err());
    same!(world.lease("j1").await?, before.map(|at| at + 1_000));
    Ok(())
}

/// Prefetches ids from two queues for a worker without room, then replaces one of the queues.
async fn fed(world: &World) -> Result<[String; 2], Failure> {
    let queues = [world.queue_of("sal"), world.queue()];
    for (queue, id) in queues.iter().zip(["s", "o"]) {
        let feed = world.keys().feed(WORKER, queue);
        world.raw::<()>(&["LPUSH", &feed, id]).await?;
    }
    spoil(world, &queues[0]).await?;
    Ok(queues)
}

/// The ids of the other queue return to it.
async fn surplus_of_a_queue_that_is_no_list_stays(world: &World) -> Outcome {
    let queues = fed(world).await?;
    let taken = world.claim(WORKER, &queues, 0).await?;
    same!((taken.jobs.len(), taken.more), (0, false));
    same!(world.waiting().await?, ["o"]);
    same!(
        world.list(&world.keys().feed(WORKER, &queues[0])).await?,
        ["s"]
    );
    Ok(())
}

/// The worker stays registered for the ids that it cannot return.
async fn a_leaving_worker_hands_back_the_rest(world: &World) -> Outcome {
    let queues = fed(world).await?;
    world.renew(WORKER, &[]).await?;
    let listener = Listener {
        worker: WORKER,
        queues: &queues,
    };
    same!(world.broker.deregister_prefetch(listener).await?, 1);
    same!(world.waiting().await?, ["o"]);
    same!(world.listener(WORKER).await?, None);
    same!(
        world.list(&world.keys().feed(WORKER, &queues[0])).await?,
        ["s"]
    );
    Ok(())
}

/// The order of the queues does not matter.
async fn a_dead_listeners_other_ids_go_back(world: &World) -> Outcome {
    let queues = fed(world).await?;
    let feeds = world.keys().prefetch_registry();
    for (queue, at) in queues.iter().zip(["1", "2"]) {
        let member = format!("{WORKER} {queue}");
        world.raw::<()>(&["ZADD", &feeds, at, &member]).await?;
    }
    world.pass(ALIVE_MS);
    same!(world.broker.reclaim().await?.moved, 1);
    same!(world.waiting().await?, ["o"]);
    Ok(())
}

/// The record of a running job was changed by hand.
async fn counters_that_are_no_numbers_are_none(world: &World) -> Outcome {
    for way in ["release", "lose"] {
        let claimed = world.started("j1").await?;
        let set = ["HSET", &world.key("j1"), "mw_attempt", "x", "mw_lost", "y"];
        world.raw::<()>(&set).await?;
        if way == "release" {
            world.broker.release(&claimed).await?;
        } else {
            same!(world.lose_all().await?.requeued, ["j1"]);
            same!(world.field("j1", "mw_lost").await?.as_deref(), Some("1"));
        }
        same!(world.field("j1", "mw_attempt").await?.as_deref(), Some("0"));
        same!(ids(&world.take(1).await?), ["j1"]);
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

async fn settings_of_another_type_keep_no_worker_from_its_poll(world: &World) -> Outcome {
    spoil(world, &world.keys().config()).await?;
    let osis = "osis".parse()?;
    let request = Controlled {
        worker: WORKER,
        queues: &[],
        types: std::slice::from_ref(&osis),
        held: &[],
        turn: Duration::from_secs(1),
    };
    let polled = world.broker.control(request).await?;
    check!(polled.turn);
    same!(polled.migrations, [None]);
    Ok(())
}

/// A user without the right to rename keys leaves them where they are.
async fn keys_of_another_type_move_away_if_they_are_found_again(world: &World) -> Outcome {
    let keys = world.keys();
    let (heads, batch) = (
        format!("{}x", world.named("HEADS")?),
        keys.batch(&"b".parse()?),
    );
    let found_again = [keys.lease(), heads];
    for key in found_again.iter().chain([&batch, &keys.config()]) {
        spoil(world, key).await?;
    }
    world.raw::<()>(&["ZADD", &keys.watch(), "1", "j"]).await?;
    world
        .raw::<()>(&["HSET", &keys.walk(), "next", "0"])
        .await?;
    let mut moved = world.broker.move_away(false).await?;
    moved.extend(world.broker.move_away(true).await?);
    spoilt(world, &batch).await?;
    spoilt(world, &keys.config()).await?;
    same!(world.raw::<String>(&["TYPE", &keys.watch()]).await?, "zset");
    same!(world.raw::<String>(&["TYPE", &keys.walk()]).await?, "hash");
    let mut rename = redis::cmd("RENAME");
    rename.arg(keys.due()).arg(keys.due());
    let renamed: redis::RedisResult<()> =
        rename.query_async(&mut world.broker.conn().clone()).await;
    if renamed.is_err_and(|error| error.code() == Some("NOPERM")) {
        check!(moved.is_empty());
        return Ok(());
    }
    same!(moved, found_again);
    for key in &found_again {
        same!(world.raw::<String>(&["TYPE", key]).await?, "none");
        spoilt(world, &keys.damaged(key)).await?;
    }
    Ok(())
}
