//! claim: pops ids from the lists in order, each under a lease.

use meshwork_broker::bananas::{Found, Requeue};
use meshwork_model::route::Priority;

use super::{Outcome, Side, World, cases, check, ids, same};
use crate::cases::harness::world::{LEASE_MS, START, WORKER};

cases![
    route_by_route_the_most_urgent_first,
    oldest_first,
    a_lease_and_a_token_and_a_place_among_those_that_run,
    gives_what_is_there,
    any_bytes_are_an_id,
    drops_what_ours_run,
    jobs_without_an_id_are_each_held_by_itself,
    tells_what_is_done,
    takes_what_came_to_it_first,
    hands_back_what_it_does_not_want,
    passes_over_what_is_no_list,
    keys_of_ours_of_another_kind_change_nothing,
    a_place_among_those_that_run_is_only_for_tools,
    large_records_come_one_by_one,
    tells_the_time,
];

/// The order is that of Bananas.
async fn route_by_route_the_most_urgent_first(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let lists = side.keys().lists(&["gpu".parse()?, "default".parse()?]);
    for (at, list) in lists.iter().enumerate().rev() {
        side.push(list, &format!("j{at}")).await?;
    }
    let taken = side.claim(&lists, 8).await?.jobs;
    let expected: Vec<_> = (0..8).map(|at| format!("j{at}")).collect();
    same!(ids(&taken), expected);
    for (at, job) in taken.iter().enumerate() {
        same!(job.list, lists[at]);
    }
    same!(side.list(&lists[8]).await?, ["j8"]);
    Ok(())
}

/// A scheduler of Bananas that read a record before the job ran writes the old record, and pushes the job again.
async fn tells_what_is_done(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let from_before =
        "{\"name\":\"n\",\"status\":\"scheduled\",\"updated_at\":\"2023-11-14T22:13:19Z\"}";
    let of_now = from_before.replace(":19Z", ":20.5Z");
    for (id, status, record, done) in [
        ("j1", "completed", from_before, true),
        ("j2", "completed", &of_now, false),
        ("j3", "failed", from_before, false),
        ("j4", "", from_before, false),
        // Bananas' cron gives all of its jobs the empty id.
        ("", "completed", from_before, false),
    ] {
        let (key, at) = (side.keys().result(id), "2023-11-14T22:13:20Z");
        let result = ["HSET", &key, "status", status, "completed_at", at];
        world.raw::<()>(&result).await?;
        side.put_text(id, record).await?;
        let claimed = side.take_one().await?;
        same!((id, claimed.is_done()), (id, done));
        let done = claimed.done_at.as_deref();
        same!(done, Some(at).filter(|_| status == "completed"));
    }
    side.set(&side.keys().result("odd"), "x").await?;
    side.put_text("odd", "{}").await?;
    same!(side.take_one().await?.done_at, None);
    Ok(())
}

/// Within a list.
async fn oldest_first(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1", "j2", "j3"]).await?;
    same!(ids(&side.take(2).await?), ["j1", "j2"]);
    same!(ids(&side.take(2).await?), ["j3"]);
    Ok(())
}

/// The job has this worker's lease, and Bananas' tools see that it runs.
async fn a_lease_and_a_token_and_a_place_among_those_that_run(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.keys().processing(), "theirs").await?;
    let claimed = side.started("j1").await?;
    let lease: u64 = world.raw(&["ZSCORE", &side.keys().lease(), "j1"]).await?;
    same!(lease, START + LEASE_MS);
    let held: String = world.raw(&["HGET", &side.keys().held(), "j1"]).await?;
    same!(held, format!("{} {}", claimed.token, side.plain()));
    let running = side.list(&side.keys().processing()).await?;
    same!(running, ["theirs", "j1"]);
    same!(claimed.lost, 0);
    check!(side.list(&side.plain()).await?.is_empty());
    Ok(())
}

/// A claim also returns invalid records, and ids without a record.
async fn gives_what_is_there(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put_text("bad", "{not json").await?;
    side.push(&side.plain(), "missing").await?;
    let list = side.keys().job("odd");
    side.push(&list, "x").await?;
    side.push(&side.plain(), "odd").await?;
    side.put_text("good", "{\"id\":\"good\",\"n\":12345678901234567890}")
        .await?;
    let found: Vec<_> = side
        .take(9)
        .await?
        .into_iter()
        .map(|job| job.found)
        .collect();
    check!(matches!(&found[0], Found::Corrupt(bytes, _) if bytes == b"{not json"));
    check!(found[1..3] == [Found::Missing, Found::Odd]);
    check!(matches!(&found[3], Found::Job(job) if job.text().contains("12345678901234567890")));
    Ok(())
}

/// Bananas' cron writes empty ids.
async fn any_bytes_are_an_id(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for id in ["", "a b:c"] {
        side.push(&side.plain(), id).await?;
    }
    let mut push = redis::cmd("LPUSH");
    push.arg(side.plain()).arg(&b"\xff\0"[..]);
    push.query_async::<()>(&mut world.conn().clone()).await?;
    let taken = side.take(9).await?;
    let expected: [&[u8]; 3] = [b"", b"a b:c", b"\xff\0"];
    for (job, expected) in taken.iter().zip(expected) {
        same!(job.id, expected);
        check!(side.verbs.release(job, Requeue::Next).await?);
    }
    side.idle().await?;
    let left: usize = world.raw(&["LLEN", &side.plain()]).await?;
    same!(left, 3);
    Ok(())
}

/// Two schedulers of Bananas may push one job twice.
async fn drops_what_ours_run(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1", "j2"]).await?;
    side.push(&side.plain(), "j1").await?;
    let taken = side.claim(&[side.plain()], 9).await?;
    same!(ids(&taken.jobs), ["j1", "j2"]);
    same!(taken.dropped, 1);
    same!(side.list(&side.keys().processing()).await?, ["j1", "j2"]);
    Ok(())
}

/// All jobs of Bananas' cron share the empty id, and two that are due at the same time are two jobs.
async fn jobs_without_an_id_are_each_held_by_itself(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu = side.keys().routed(&"gpu".parse()?, Default::default());
    let lists = [gpu, side.plain()];
    for list in &lists {
        side.push(list, "").await?;
        side.push(list, "").await?;
    }
    let mut jobs = side.claim(&lists, 3).await?.jobs;
    jobs.extend(side.claim(&lists, 3).await?.jobs);
    same!(ids(&jobs), ["", "", "", ""]);
    same!(side.list(&side.keys().processing()).await?, [""; 4]);
    same!(side.renew(&jobs, &[]).await?.len(), 0);
    check!(side.verbs.release(&jobs[0], Requeue::Next).await?);
    same!(side.renew(&jobs, &[]).await?, [jobs[0].hold.clone()]);
    same!(side.list(&lists[0]).await?, [""]);
    for job in &jobs[1..3] {
        side.finish(job, None).await?;
    }
    same!(side.list(&side.keys().processing()).await?, [""]);
    world.pass(LEASE_MS);
    same!(side.verbs.reclaim().await?.requeued, [b""]);
    same!(side.list(&lists[1]).await?, [""]);
    side.idle().await
}

/// An id that a blocked connection fetched is claimed first.
async fn takes_what_came_to_it_first(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let feed = side.keys().feed(WORKER, &side.plain());
    side.put(&["j1", "j2"]).await?;
    side.push(&feed, "fed").await?;
    let lists = [side.keys().plain(Priority::High), side.plain()];
    side.push(&lists[0], "urgent").await?;
    same!(ids(&side.claim(&lists, 2).await?.jobs), ["fed", "urgent"]);
    same!(side.list(&side.plain()).await?, ["j1", "j2"]);
    Ok(())
}

/// Surplus ids go back to the lists that they came from, in order.
async fn hands_back_what_it_does_not_want(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let feed = side.keys().feed(WORKER, &side.plain());
    for id in ["f1", "f2", "f3"] {
        side.push(&feed, id).await?;
    }
    side.put(&["j1"]).await?;
    same!(ids(&side.take(1).await?), ["f1"]);
    same!(side.list(&side.plain()).await?, ["f2", "f3", "j1"]);
    same!(side.take(0).await?.len(), 0);
    check!(side.list(&feed).await?.is_empty());
    Ok(())
}

/// The other lists are still read.
async fn passes_over_what_is_no_list(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let high = side.keys().plain(Priority::High);
    side.set(&high, "x").await?;
    side.put(&["j1"]).await?;
    let lists = [high.clone(), side.plain()];
    same!(ids(&side.claim(&lists, 9).await?.jobs), ["j1"]);
    // An id that came from that list earlier stays in the prefetch list.
    side.push(&side.keys().feed(WORKER, &high), "fed").await?;
    same!(side.claim(&lists, 0).await?.jobs.len(), 0);
    same!(ids(&side.claim(&lists, 1).await?.jobs), ["fed"]);
    Ok(())
}

/// The ids stay in their lists.
async fn keys_of_ours_of_another_kind_change_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1"]).await?;
    for key in [side.keys().lease(), side.keys().held()] {
        side.set(&key, "x").await?;
        let before = world.all().await?;
        check!(side.claim(&[side.plain()], 1).await.is_err());
        world.unchanged(&before).await?;
        world.raw::<()>(&["DEL", &key]).await?;
    }
    Ok(())
}

/// Jobs run and end even if the list of running jobs has a wrong type.
async fn a_place_among_those_that_run_is_only_for_tools(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.set(&side.keys().processing(), "x").await?;
    let claimed = side.started("j1").await?;
    check!(side.verbs.release(&claimed, Requeue::Next).await?);
    same!(side.list(&side.plain()).await?, ["j1"]);
    Ok(())
}

/// The size of an answer has a bound.
async fn large_records_come_one_by_one(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let large = format!("{{\"payload\":\"{}\"}}", "x".repeat(5 * 1024 * 1024));
    for id in ["j1", "j2", "j3"] {
        side.put_text(id, &large).await?;
    }
    let taken = side.claim(&[side.plain()], 9).await?;
    same!(ids(&taken.jobs), ["j1", "j2"]);
    check!(taken.more);
    check!(!side.claim(&[side.plain()], 9).await?.more);
    Ok(())
}

/// The time is that of the server's clock.
async fn tells_the_time(world: &World) -> Outcome {
    let side = Side::of(world)?;
    same!(side.claim(&[side.plain()], 1).await?.at_ms, START);
    Ok(())
}
