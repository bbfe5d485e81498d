//! Slots: the number of running jobs of a queue, or of a key. Each end of a run frees its slot.

use std::time::Duration;

use meshwork_broker::{Cancelled, Claim, Claimed, Deleted, LegacyList, PrefetchLists};
use meshwork_model::outcome::{Failure as Wrong, FailureKind};
use meshwork_model::route::Priority;

use crate::cases::harness::options::{
    LOOK_MS, claim, exchange, held, keyed, members, promote, put_keyed, set, taken,
};
use crate::cases::harness::world::{LEASE, LEASE_MS, WORKER, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    so_many_run_at_once,
    jobs_ahead_of_slots_use_no_limit,
    however_a_run_ends_its_slot_is_free,
    however_a_run_of_a_key_ends_the_next_one_is_there,
    a_slot_of_a_dead_worker_is_taken_until_its_lease_ends,
    a_slot_that_was_left_behind_is_found,
    who_is_set_aside_stays_so_without_a_slot,
    a_limit_that_changes_holds_at_once,
    a_limit_that_is_taken_away_leaves_nothing,
    all_priorities_share_them,
    each_key_has_its_own,
    jobs_without_a_key_need_none_of_a_key,
    both_limits_hold,
    jobs_of_other_clients_need_one_too,
    jobs_from_old_lists_need_one_too,
    a_stale_report_frees_no_slot,
    a_key_like_slots_holds_nobody_up,
];

async fn one(world: &World) -> Result<Claimed, Failure> {
    world.take_one().await
}

/// The answer has the time for which the queue is full.
async fn so_many_run_at_once(world: &World) -> Outcome {
    set(world, "concurrency=2").await?;
    world.put(&["a", "b", "c", "d"]).await?;
    let fetched = claim(world, 5).await?;
    same!(ids(&fetched.jobs), ["a", "b"]);
    same!(fetched.blocked[0].1, Duration::from_millis(200));
    same!(members(world, "SLOTS", None).await?, ["a", "b"]);
    check!(taken(world, 5).await?.is_empty());
    same!(world.waiting().await?, ["c", "d"]);
    world.finish(&fetched.jobs[0], "42").await?;
    same!(held(world, 0).await?, None);
    same!(taken(world, 5).await?, ["c"]);
    Ok(())
}

/// A worker's free slots get jobs of a limited queue; jobs beyond them would use up the limit before they run.
async fn jobs_ahead_of_slots_use_no_limit(world: &World) -> Outcome {
    let claim = async |ahead| {
        let claim = Claim {
            queues: &[world.queue()],
            old: &[],
            reverse: false,
            prefetch: PrefetchLists::All,
            want: 3,
            ahead,
            lease: LEASE,
            worker: WORKER,
            token: &world.token(),
        };
        world.broker.claim(claim).await
    };
    let limits = [
        "concurrency=9",
        "rate=window:9:60000",
        "fair=1",
        "key_concurrency=9",
        "key_rate=window:9:60000",
    ];
    for (number, limit) in limits.into_iter().enumerate() {
        set(world, limit).await?;
        let all = ["a", "b", "c", "d"].map(|id| format!("{id}{number}"));
        world.put(&all.each_ref().map(String::as_str)).await?;
        let fetched = claim(2).await?;
        same!(ids(&fetched.jobs), all[..1]);
        same!(fetched.blocked.len(), 0);
        same!(claim(3).await?.jobs.len(), 0);
        let others = claim(0).await?.jobs;
        same!(ids(&others), all[1..]);
        for run in fetched.jobs.iter().chain(&others) {
            world.finish(run, "42").await?;
        }
    }
    set(world, "payload=1000000").await?;
    world.put(&["e", "f", "g"]).await?;
    same!(ids(&claim(2).await?.jobs), ["e", "f", "g"]);
    Ok(())
}

const WAYS: [&str; 11] = [
    "finish",
    "exchange",
    "fail",
    "retry",
    "retry later",
    "release",
    "reclaim",
    "cancel",
    "delete",
    "poison",
    "gone",
];

/// Ends the only run.
async fn end(world: &World, run: &Claimed, way: &str) -> Outcome {
    let broker = &world.broker;
    let failure = Wrong::new(FailureKind::Script, "boom");
    match way {
        "finish" => drop(world.finish(run, "42").await?),
        "exchange" => drop(exchange(world, &[run], 0).await?),
        "fail" => drop(world.fail(run, FailureKind::Permanent).await?),
        "retry" => drop(world.fail(run, FailureKind::Script).await?),
        "retry later" => {
            let delay = Duration::from_secs(3600);
            broker.fail(run, &failure, b"", b"", delay).await?;
        }
        "release" => drop(broker.release(run).await?),
        "reclaim" => same!(world.lose_all().await?.requeued, ["a"]),
        "cancel" => same!(
            broker.cancel(&run.job, "x", true).await?,
            Cancelled::Cancelled
        ),
        "delete" => {
            world.pass(LEASE_MS);
            same!(broker.delete(&run.job).await?, Deleted::Deleted);
        }
        "poison" => {
            let lost = ["HSET", &world.key("a"), "mw_lost", "4"];
            world.raw::<()>(&lost).await?;
            broker.isolate(run).await?;
            same!(world.lose_all().await?.ended, ["a"]);
        }
        _ => {
            world.raw::<()>(&["DEL", &world.key("a")]).await?;
            same!(world.lose_all().await?.requeued.len(), 0);
        }
    }
    Ok(())
}

/// The run succeeds or fails, or its record is deleted.
async fn however_a_run_ends_its_slot_is_free(world: &World) -> Outcome {
    for way in WAYS {
        set(world, "concurrency=1").await?;
        let mut job = world.job("a")?;
        job.retries = 3;
        world.put_jobs(&[job, world.job("b")?]).await?;
        let run = one(world).await?;
        same!((way, taken(world, 1).await?.len()), (way, 0));
        end(world, &run, way).await?;
        let left = members(world, "SLOTS", None).await?.len();
        same!((way, left), (way, usize::from(way == "gone")));
        same!((way, taken(world, 1).await?.len()), (way, 1));
        same!((way, members(world, "SLOTS", None).await?.len()), (way, 1));
        same!((way, taken(world, 1).await?.len()), (way, 0));
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// The next job is first in its queue, before jobs of other keys. Only the deletion of a record is noticed later.
async fn however_a_run_of_a_key_ends_the_next_one_is_there(world: &World) -> Outcome {
    for way in WAYS {
        set(world, "key_concurrency=1").await?;
        put_keyed(world, "k", &["a", "b", "c"]).await?;
        let run = one(world).await?;
        same!((way, taken(world, 1).await?.len()), (way, 0));
        same!(members(world, "BACKLOG", Some("k")).await?, ["b", "c"]);
        world.put(&["z"]).await?;
        end(world, &run, way).await?;
        if way == "gone" {
            world.pass(LOOK_MS);
            promote(world).await?;
        }
        let first = match way {
            "release" | "reclaim" => "a",
            _ => "b",
        };
        same!((way, taken(world, 1).await?), (way, vec![first.to_owned()]));
        same!(
            (way, members(world, "SLOTS", Some("k")).await?),
            (way, vec![first.to_owned()])
        );
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// It is not free earlier: the run may go on.
async fn a_slot_of_a_dead_worker_is_taken_until_its_lease_ends(world: &World) -> Outcome {
    set(world, "concurrency=1").await?;
    world.put(&["a", "b"]).await?;
    one(world).await?;
    world.pass(LEASE_MS - 1);
    world.broker.reclaim().await?;
    check!(taken(world, 1).await?.is_empty());
    world.pass(1);
    check!(taken(world, 1).await?.is_empty());
    world.broker.reclaim().await?;
    same!(taken(world, 2).await?, ["a"]);
    Ok(())
}

/// Any worker that needs a slot frees it; slots with a lease stay.
async fn a_slot_that_was_left_behind_is_found(world: &World) -> Outcome {
    set(world, "concurrency=2").await?;
    world.put(&["a", "b", "c"]).await?;
    one(world).await?;
    let slots = format!("{}{}", world.named("SLOTS")?, world.queue());
    world.raw::<()>(&["ZADD", &slots, "1", "nobody"]).await?;
    same!(taken(world, 5).await?, ["b"]);
    same!(members(world, "SLOTS", None).await?, ["a", "b"]);
    check!(taken(world, 5).await?.is_empty());
    Ok(())
}

/// A check finds nothing to do, and does not repeat each millisecond, whatever the rate allows.
async fn who_is_set_aside_stays_so_without_a_slot(world: &World) -> Outcome {
    set(world, "key_concurrency=1 key_rate=bucket:5:600000").await?;
    put_keyed(world, "k", &["a", "b", "c"]).await?;
    same!(taken(world, 9).await?, ["a"]);
    world.pass(LOOK_MS);
    same!(promote(world).await?, (1, Some(LOOK_MS)));
    check!(world.waiting().await?.is_empty());
    same!(members(world, "BACKLOG", Some("k")).await?, ["b", "c"]);
    Ok(())
}

/// The new limit applies to later starts.
async fn a_limit_that_changes_holds_at_once(world: &World) -> Outcome {
    set(world, "concurrency=3").await?;
    world.put(&["a", "b", "c", "d", "e"]).await?;
    let runs = claim(world, 9).await?.jobs;
    same!(runs.len(), 3);
    set(world, "concurrency=2").await?;
    world.finish(&runs[0], "42").await?;
    check!(taken(world, 9).await?.is_empty());
    world.finish(&runs[1], "42").await?;
    same!(taken(world, 9).await?, ["d"]);
    set(world, "concurrency=3").await?;
    same!(taken(world, 9).await?, ["e"]);
    Ok(())
}

/// Neither slots nor jobs that are set aside are left.
async fn a_limit_that_is_taken_away_leaves_nothing(world: &World) -> Outcome {
    set(world, "concurrency=9 key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b", "c", "d"]).await?;
    let run = one(world).await?;
    check!(taken(world, 9).await?.is_empty());
    set(world, "").await?;
    world.pass(LOOK_MS);
    promote(world).await?;
    same!(taken(world, 9).await?, ["b", "c", "d"]);
    world.finish(&run, "42").await?;
    world.lose_all().await?;
    check!(members(world, "SLOTS", None).await?.is_empty());
    check!(members(world, "SLOTS", Some("k")).await?.is_empty());
    check!(members(world, "BACKLOG", Some("k")).await?.is_empty());
    same!(world.field("a", "mw_slot").await?, None);
    Ok(())
}

/// All priorities are one queue.
async fn all_priorities_share_them(world: &World) -> Outcome {
    set(world, "concurrency=2 key_concurrency=1").await?;
    let queue = world.queue();
    let lists = [
        format!("{queue}:prio:0"),
        queue.clone(),
        format!("{queue}:prio:2"),
    ];
    let mut jobs = keyed(world, "k", &["h", "n", "l"])?;
    jobs[0].route.priority = Priority::High;
    jobs[2].route.priority = Priority::Low;
    jobs.extend([world.job("x")?, world.job("y")?]);
    world.put_jobs(&jobs).await?;
    let fetched = world.claim(WORKER, &lists, 9).await?;
    same!(ids(&fetched.jobs), ["h", "x"]);
    same!(fetched.blocked.len(), 3);
    world.finish(&fetched.jobs[0], "42").await?;
    let fetched = world.claim(WORKER, &lists, 9).await?;
    same!(ids(&fetched.jobs), ["n"]);
    Ok(())
}

/// A key does not share the slots of others.
async fn each_key_has_its_own(world: &World) -> Outcome {
    set(world, "key_concurrency=2").await?;
    put_keyed(world, "k", &["a", "b", "c"]).await?;
    put_keyed(world, "l m", &["d", "e", "f"]).await?;
    let runs = claim(world, 9).await?.jobs;
    same!(ids(&runs), ["a", "b", "d", "e"]);
    world.finish(&runs[3], "42").await?;
    same!(taken(world, 9).await?, ["f"]);
    Ok(())
}

/// Their number is not limited.
async fn jobs_without_a_key_need_none_of_a_key(world: &World) -> Outcome {
    set(world, "key_concurrency=1").await?;
    world.put(&["a", "b"]).await?;
    same!(taken(world, 9).await?, ["a", "b"]);
    same!(world.field("a", "mw_slot").await?, None);
    Ok(())
}

/// Both limits apply: that of the queue and that of the key.
async fn both_limits_hold(world: &World) -> Outcome {
    set(world, "concurrency=2 key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b"]).await?;
    world.put(&["c", "d"]).await?;
    let runs = claim(world, 9).await?.jobs;
    same!(ids(&runs), ["a", "c"]);
    world.finish(&runs[0], "42").await?;
    same!(taken(world, 9).await?, ["b"]);
    world.finish(&runs[1], "42").await?;
    same!(taken(world, 9).await?, ["d"]);
    Ok(())
}

/// Their records are unknown before they start.
async fn jobs_of_other_clients_need_one_too(world: &World) -> Outcome {
    set(world, "concurrency=1").await?;
    for id in ["a", "b"] {
        world
            .put_foreign(id, &[("script", "1"), ("status", "dispatched")])
            .await?;
    }
    let run = one(world).await?;
    check!(taken(world, 1).await?.is_empty());
    world.finish(&run, "42").await?;
    same!(taken(world, 1).await?, ["b"]);
    Ok(())
}

/// The slot is of the queue to which they return.
async fn jobs_from_old_lists_need_one_too(world: &World) -> Outcome {
    set(world, "concurrency=1").await?;
    let list = format!("{}old", world.named("OLD_TYPE")?);
    for id in ["a", "b"] {
        let fields = [
            "HSET",
            &world.key(id),
            "script",
            "1",
            "status",
            "dispatched",
            "script_type",
            "osis",
        ];
        world.raw::<()>(&fields).await?;
        world.raw::<()>(&["LPUSH", &list, id]).await?;
    }
    let old = [LegacyList {
        list: list.clone(),
        requeue_to: world.queue(),
    }];
    let claim = async || {
        let token = world.token();
        let claim = Claim {
            queues: &[],
            old: &old,
            reverse: false,
            prefetch: PrefetchLists::All,
            want: 5,
            ahead: 0,
            lease: LEASE,
            worker: WORKER,
            token: &token,
        };
        world.broker.claim(claim).await
    };
    let runs = claim().await?.jobs;
    same!(ids(&runs), ["a"]);
    same!(claim().await?.jobs.len(), 0);
    world.finish(&runs[0], "42").await?;
    same!(ids(&claim().await?.jobs), ["b"]);
    Ok(())
}

/// The slot belongs to the current run.
async fn a_stale_report_frees_no_slot(world: &World) -> Outcome {
    set(world, "concurrency=1 key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b"]).await?;
    let stale = one(world).await?;
    world.lose_all().await?;
    same!(taken(world, 1).await?, ["a"]);
    world.finish(&stale, "42").await?;
    world.fail(&stale, FailureKind::Script).await?;
    world.broker.release(&stale).await?;
    exchange(world, &[&stale], 0).await?;
    same!(members(world, "SLOTS", None).await?, ["a"]);
    same!(members(world, "SLOTS", Some("k")).await?, ["a"]);
    check!(taken(world, 1).await?.is_empty());
    Ok(())
}

/// The limit cannot be kept then, and no job is lost because of it.
async fn a_key_like_slots_holds_nobody_up(world: &World) -> Outcome {
    set(world, "concurrency=1").await?;
    let slots = format!("{}{}", world.named("SLOTS")?, world.queue());
    world.raw::<()>(&["SET", &slots, "x"]).await?;
    world.put(&["a", "b"]).await?;
    let runs = claim(world, 2).await?.jobs;
    same!(ids(&runs), ["a", "b"]);
    same!(world.broker.running().await?, 2);
    world.finish(&runs[0], "42").await?;
    same!(world.status("a").await?, "finished");
    same!(world.raw::<String>(&["GET", &slots]).await?, "x");
    Ok(())
}
