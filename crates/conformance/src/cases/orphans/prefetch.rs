//! Waiting for work: an id in a queue wakes one worker and moves into its prefetch list, from which a claim takes it.
//! The id is in a list at every moment.

use std::collections::BTreeSet;
use std::time::Duration;

use meshwork_broker::{BlockingConn, Claim, PrefetchLists};

use crate::cases::harness::legacy_worker::{migrate, old};
use crate::cases::harness::world::{LEASE, PATIENCE, WORKER, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    an_id_that_is_there_comes_at_once,
    a_push_by_any_client_wakes_the_worker,
    an_enqueued_job_wakes_the_worker,
    a_requeued_job_wakes_the_worker,
    one_id_wakes_one_worker,
    a_wait_ends,
    a_wait_can_be_ended,
    the_oldest_comes_first,
    a_claim_takes_what_came,
    what_came_goes_before_what_waits,
    more_than_wanted_goes_back_in_order,
    without_a_slot_all_goes_back,
    ids_without_a_job_are_dropped,
    a_prefetch_list_of_another_worker_is_not_read,
    only_own_prefetch_lists_are_read,
    a_reply_ends_the_wait_for_it,
    the_record_comes_with_the_reply,
    a_wait_for_a_reply_ends,
    one_long_walk_is_all_that_a_call_does,
];

/// Timeout of waits that must end without a result.
const SHORT: Duration = Duration::from_millis(30);

/// Waits at the queue of plain jobs.
async fn park(world: &World, blocking: &BlockingConn, worker: &str) -> Result<bool, Failure> {
    let queue = world.queue();
    Ok(world
        .broker
        .wait_for_job(blocking, worker, &queue, PATIENCE)
        .await?)
}

/// A worker does not wait if a job is queued already.
async fn an_id_that_is_there_comes_at_once(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let blocking = world.broker.blocking_conn().await?;
    check!(park(world, &blocking, WORKER).await?);
    same!(world.list(&world.feed(WORKER)).await?, ["j1"]);
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// Runs `act` while a worker waits; the worker must wake up.
async fn wakes(world: &World, act: impl Future<Output = Outcome>) -> Outcome {
    let blocking = world.broker.blocking_conn().await?;
    let (came, acted) = tokio::join!(park(world, &blocking, WORKER), act);
    acted?;
    check!(came?);
    same!(world.list(&world.feed(WORKER)).await?, ["j1"]);
    Ok(())
}

/// The id is pushed by a client without Meshwork, such as a command line.
async fn a_push_by_any_client_wakes_the_worker(world: &World) -> Outcome {
    wakes(world, world.push("j1")).await
}

/// The id is pushed by Meshwork's own script.
async fn an_enqueued_job_wakes_the_worker(world: &World) -> Outcome {
    wakes(world, world.put(&["j1"])).await
}

/// The job is released by a worker that shuts down.
async fn a_requeued_job_wakes_the_worker(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    wakes(world, async {
        world.broker.release(&claimed).await?;
        Ok(())
    })
    .await
}

/// One id wakes one of two waiting workers; the other waits until the next id.
async fn one_id_wakes_one_worker(world: &World) -> Outcome {
    let (one, two) = tokio::try_join!(world.broker.blocking_conn(), world.broker.blocking_conn())?;
    let (one, two) = (park(world, &one, "w1-a"), park(world, &two, "w2-b"));
    tokio::pin!(one, two);
    let first = async {
        tokio::select! {
            woke = &mut one => (true, woke),
            woke = &mut two => (false, woke),
        }
    };
    let ((one_woke, woke), pushed) = tokio::join!(first, world.push("j1"));
    pushed?;
    check!(woke?);
    same!(fed(world).await?, ["j1"]);
    world.push("j2").await?;
    check!(if one_woke { two.await? } else { one.await? });
    let expected = if one_woke { ["j1", "j2"] } else { ["j2", "j1"] };
    same!(fed(world).await?, expected);
    Ok(())
}

/// Returns the prefetched ids of the first worker, then of the second.
async fn fed(world: &World) -> Result<Vec<String>, Failure> {
    let mut fed = world.list(&world.feed("w1-a")).await?;
    fed.extend(world.list(&world.feed("w2-b")).await?);
    Ok(fed)
}

/// Every wait has a timeout, so that a lost server is noticed.
async fn a_wait_ends(world: &World) -> Outcome {
    let blocking = world.broker.blocking_conn().await?;
    let came = world
        .broker
        .wait_for_job(&blocking, WORKER, &world.queue(), SHORT)
        .await?;
    check!(!came);
    world.unchanged("").await
}

/// A worker that shuts down ends its wait, and prefetches no id afterwards.
async fn a_wait_can_be_ended(world: &World) -> Outcome {
    let blocking = world.broker.blocking_conn().await?;
    let waiting = park(world, &blocking, WORKER);
    tokio::pin!(waiting);
    // The wait may not have reached the server yet, so it is ended repeatedly until it ends.
    let came = loop {
        tokio::select! {
            came = &mut waiting => break came?,
            ended = world.broker.unblock(&blocking) => ended?,
        }
    };
    check!(!came);
    world.push("j1").await?;
    same!(world.waiting().await?, ["j1"]);
    check!(world.list(&world.feed(WORKER)).await?.is_empty());
    Ok(())
}

/// Ids come in the order in which they waited.
async fn the_oldest_comes_first(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let blocking = world.broker.blocking_conn().await?;
    for _ in 0..3 {
        check!(park(world, &blocking, WORKER).await?);
    }
    same!(world.list(&world.feed(WORKER)).await?, ["j1", "j2", "j3"]);
    same!(ids(&world.take(3).await?), ["j1", "j2", "j3"]);
    Ok(())
}

/// Moves ids into a worker's prefetch list, as if it had waited.
async fn feed(world: &World, worker: &str, ids: &[&str]) -> Outcome {
    for id in ids {
        world.raw::<()>(&["LPUSH", &world.feed(worker), id]).await?;
        world.raw::<()>(&["LREM", &world.queue(), "0", id]).await?;
    }
    Ok(())
}

/// A prefetched job is claimed like any other, and belongs to its queue.
async fn a_claim_takes_what_came(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    feed(world, WORKER, &["j1"]).await?;
    let claimed = world.take_one().await?;
    same!(claimed.queue, world.queue());
    same!(world.read("j1").await?.queue, Some(world.queue()));
    same!(claimed.job.attempt, 1);
    check!(world.lease("j1").await?.is_some());
    check!(world.list(&world.feed(WORKER)).await?.is_empty());
    world.lose_all().await?;
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// A prefetched job waited longer than the others.
async fn what_came_goes_before_what_waits(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    feed(world, WORKER, &["j1", "j2"]).await?;
    same!(ids(&world.take(3).await?), ["j1", "j2", "j3"]);
    Ok(())
}

/// A worker never holds more ids than it has slots: the surplus returns to the front of its queue.
async fn more_than_wanted_goes_back_in_order(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3", "j4"]).await?;
    feed(world, WORKER, &["j1", "j2", "j3"]).await?;
    same!(ids(&world.take(1).await?), ["j1"]);
    check!(world.list(&world.feed(WORKER)).await?.is_empty());
    same!(world.waiting().await?, ["j2", "j3", "j4"]);
    Ok(())
}

/// A full worker returns all prefetched ids.
async fn without_a_slot_all_goes_back(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let before = world.all().await?;
    feed(world, WORKER, &["j1", "j2"]).await?;
    check!(world.take(0).await?.is_empty());
    world.unchanged(&before).await
}

/// Such ids take no slot, as in a queue.
async fn ids_without_a_job_are_dropped(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    feed(world, WORKER, &["ghost", "j1"]).await?;
    let taken = world.claim(WORKER, &[world.queue()], 1).await?;
    same!((ids(&taken.jobs), taken.dropped), (vec!["j1"], 1));
    check!(world.list(&world.feed(WORKER)).await?.is_empty());
    Ok(())
}

/// A live worker's prefetched ids are not taken by another.
async fn a_prefetch_list_of_another_worker_is_not_read(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    feed(world, "w2-b", &["j1"]).await?;
    check!(world.take(5).await?.is_empty());
    same!(world.list(&world.feed("w2-b")).await?, ["j1"]);
    Ok(())
}

/// A claim reads only those prefetch lists that the worker names. Surplus ids return to their own queues.
async fn only_own_prefetch_lists_are_read(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let queues = [world.queue(), world.queue_of("rhai")];
    let feeds = [world.feed(WORKER), world.keys().feed(WORKER, &queues[1])];
    feed(world, WORKER, &["j1"]).await?;
    for id in ["j2", "j3"] {
        world.raw::<()>(&["LREM", &queues[0], "0", id]).await?;
        world.raw::<()>(&["LPUSH", &feeds[1], id]).await?;
    }
    let (none, second) = (BTreeSet::new(), BTreeSet::from([queues[1].clone()]));
    let token = world.token();
    let claim = |want, lists| Claim {
        queues: &queues,
        old: &[],
        reverse: false,
        prefetch: lists,
        want,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &token,
    };
    let take = |want, lists| world.broker.claim(claim(want, lists));
    check!(take(0, PrefetchLists::Of(&second)).await?.jobs.is_empty());
    same!(world.list(&queues[1]).await?, ["j2", "j3"]);
    let moved = ["LMOVE", &queues[1], &feeds[1], "RIGHT", "LEFT"];
    world.raw::<()>(&moved).await?;
    let jobs = take(2, PrefetchLists::Of(&second)).await?.jobs;
    same!(ids(&jobs), ["j2", "j3"]);
    check!(jobs.iter().all(|claimed| claimed.queue == queues[1]));
    check!(take(1, PrefetchLists::Of(&none)).await?.jobs.is_empty());
    same!(world.list(&feeds[0]).await?, ["j1"]);
    same!(ids(&take(1, PrefetchLists::All).await?.jobs), ["j1"]);
    Ok(())
}

/// A client that waits for a result wakes up when the job ends.
async fn a_reply_ends_the_wait_for_it(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    let id = job.id.clone();
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let blocking = world.broker.blocking_conn().await?;
    let (came, said) = tokio::join!(
        world.broker.wait_for_reply(&blocking, &id, PATIENCE),
        world.finish(&claimed, "42")
    );
    said?;
    check!(came?);
    same!(world.status("j1").await?, "finished");
    Ok(())
}

/// The record is as the reply left it.
async fn the_record_comes_with_the_reply(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    let id = job.id.clone();
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    let blocking = world.broker.blocking_conn().await?;
    let (came, said) = tokio::join!(
        world.broker.wait_for_result(&blocking, &id, PATIENCE),
        world.finish(&claimed, "42")
    );
    said?;
    let (replied, record) = came?;
    let output = record.and_then(|job| job.output);
    same!((replied, output), (true, Some(b"42".to_vec())));
    Ok(())
}

/// This wait also has a timeout, after which the record is returned, if it exists.
async fn a_wait_for_a_reply_ends(world: &World) -> Outcome {
    let blocking = world.broker.blocking_conn().await?;
    let id = "j1".parse()?;
    check!(!world.broker.wait_for_reply(&blocking, &id, SHORT).await?);
    let none = world.broker.wait_for_result(&blocking, &id, SHORT).await?;
    check!(!none.0 && none.1.is_none());
    world.put(&["j1"]).await?;
    let waits = world.broker.wait_for_result(&blocking, &id, SHORT).await?;
    let status = waits.1.map(|job| job.status);
    same!((waits.0, status), (false, Some("dispatched".to_owned())));
    Ok(())
}

/// A long walk through an old list ends the call; the remaining ids stay in the prefetch list.
async fn one_long_walk_is_all_that_a_call_does(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["j1", "j2"]).await?;
    let list = old(world);
    let others = vec!["other"; 3_000];
    let push: Vec<_> = ["RPUSH", &list].into_iter().chain(others).collect();
    world.raw::<()>(&push).await?;
    let (queue, feed) = (world.queue(), world.feed(WORKER));
    for _ in 0..2 {
        let moved = ["LMOVE", &queue, &feed, "RIGHT", "LEFT"];
        world.raw::<()>(&moved).await?;
    }
    let taken = world.claim(WORKER, std::slice::from_ref(&queue), 5).await?;
    same!((ids(&taken.jobs), taken.more), (vec!["j1"], true));
    same!(world.list(&feed).await?, ["j2"]);
    Ok(())
}
