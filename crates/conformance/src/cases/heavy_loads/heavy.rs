//! 100,000 items wherever a script walks: each call stays short, and repeated calls process all items.

use std::time::{Duration, Instant};

use meshwork_broker::{
    Cancelled, Claim, Deleted, Error, Failed, Listener, MAX_ITEMS, PrefetchLists, Reclaimed,
};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::{ALIVE_MS, LEASE, LEASE_MS, START, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    enqueue_claim_and_take_back_all,
    claim_passes_over_ids_without_jobs,
    claim_empties_a_long_prefetch_list,
    deregister_empties_a_long_prefetch_list,
    reclaim_empties_a_long_prefetch_list,
    reclaim_forgets_leases_without_jobs,
    reclaim_takes_what_dead_listeners_left,
    one_among_many_leases,
    one_at_a_long_queue,
    stop_and_delete_in_a_long_queue,
    queues_with_many_listeners,
];

pub(crate) const MANY: usize = 100_000;

/// Greatest duration of a call, in a build without optimisation and on a busy machine. Other checks count the
/// commands of a call; this one notices work that grows with the square of the items.
const SHORT: Duration = Duration::from_secs(60);

/// Makes a call and checks its duration.
pub(crate) async fn short<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    let begun = Instant::now();
    let done = call.await?;
    let took = begun.elapsed();
    if took > SHORT {
        return Err(Failure::new(format!("a call took {took:?}")));
    }
    Ok(done)
}

/// Runs commands with many items, a thousand at a time: `head`, then the arguments that `item` returns for each
/// number.
pub(crate) async fn seed(
    world: &World,
    head: &[&str],
    item: impl Fn(usize) -> Vec<String>,
) -> Outcome {
    for from in (0..MANY).step_by(1000) {
        let mut cmd = redis::Cmd::new();
        for word in head {
            cmd.arg(*word);
        }
        for n in from..from + 1000 {
            cmd.arg(item(n));
        }
        cmd.query_async::<()>(&mut world.conn().clone()).await?;
    }
    Ok(())
}

async fn length(world: &World, key: &str) -> Result<usize, Failure> {
    world.raw(&["LLEN", key]).await
}

async fn claim(world: &World, want: usize) -> Result<meshwork_broker::ClaimedJobs, Failure> {
    let claim = Claim {
        queues: &[world.queue()],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &world.token(),
    };
    short(world.broker.claim(claim)).await
}

/// Every tenth of 100,000 ids is a job: all are claimed, with renewals and results in between. Then all workers die:
/// 200 jobs return per call until no unfinished one is left.
async fn enqueue_claim_and_take_back_all(world: &World) -> Outcome {
    let queue = world.queue();
    let ghosts = ["ghost"; 900];
    for from in (0..MANY / 10).step_by(100) {
        let jobs: Result<Vec<_>, _> = (from..from + 100)
            .map(|n| world.job(&format!("j{n}")))
            .collect();
        let jobs = jobs?;
        short(world.broker.enqueue(&jobs)).await?;
        let push: Vec<_> = ["LPUSH", &queue].into_iter().chain(ghosts).collect();
        world.raw::<()>(&push).await?;
    }
    for round in 0..MANY / 1000 {
        let taken = claim(world, MAX_ITEMS).await?;
        same!(
            (taken.jobs.len(), taken.dropped, taken.more),
            (100, 900, true)
        );
        same!(taken.jobs[0].job.id, format!("j{}", round * 100));
        if round % 10 == 0 {
            let renewed = short(world.try_renew(WORKER, &taken.jobs));
            check!(renewed.await?.gone.is_empty());
            short(world.broker.complete(&taken.jobs[0], b"42", b"", b"")).await?;
        }
    }
    check!(claim(world, 1).await?.jobs.is_empty());
    let runs = MANY / 10 - 10;
    same!(world.broker.running().await?, runs);
    world.pass(LEASE_MS);
    let mut back = 0;
    loop {
        let requeued = short(world.broker.reclaim()).await?.requeued.len();
        check!(requeued <= 200);
        if requeued == 0 {
            break;
        }
        back += requeued;
    }
    same!((back, length(world, &queue).await?), (runs, runs));
    same!(world.broker.running().await?, 0);
    Ok(())
}

/// A queue full of ids without jobs is emptied, and the job at its end runs.
async fn claim_passes_over_ids_without_jobs(world: &World) -> Outcome {
    seed(world, &["LPUSH", &world.queue()], |n| vec![format!("g{n}")]).await?;
    world.put(&["j1"]).await?;
    for _ in 0..MANY / 1000 {
        let taken = claim(world, 1).await?;
        same!(
            (taken.jobs.len(), taken.dropped, taken.more),
            (0, 1000, true)
        );
    }
    same!(claim(world, 1).await?.jobs.len(), 1);
    Ok(())
}

/// The surplus of a prefetch list returns in several calls, in order.
async fn claim_empties_a_long_prefetch_list(world: &World) -> Outcome {
    world.put(&["j0", "j1"]).await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    let feed = world.feed(WORKER);
    seed(world, &["LPUSH", &feed], |n| vec![format!("j{n}")]).await?;
    let taken = claim(world, 1).await?;
    same!((taken.jobs.len(), taken.more), (1, true));
    same!(taken.jobs[0].job.id, "j0");
    let mut calls = 1;
    while claim(world, 0).await?.more {
        calls += 1;
    }
    check!((MANY / 1000 - 1..=MANY / 1000 + 1).contains(&calls));
    same!(
        (
            length(world, &feed).await?,
            length(world, &world.queue()).await?
        ),
        (0, MANY - 1)
    );
    same!(claim(world, 1).await?.jobs[0].job.id, "j1");
    Ok(())
}

/// A worker that leaves returns all prefetched ids.
async fn deregister_empties_a_long_prefetch_list(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    let feed = world.feed(WORKER);
    seed(world, &["LPUSH", &feed], |n| vec![format!("j{n}")]).await?;
    let queues = [world.queue()];
    let listener = Listener {
        worker: WORKER,
        queues: &queues,
    };
    same!(world.broker.deregister_prefetch(listener).await?, MANY);
    same!(length(world, &world.queue()).await?, MANY);
    same!(
        world
            .raw::<String>(&["LINDEX", &world.queue(), "-1"])
            .await?,
        "j0"
    );
    same!(world.listener(WORKER).await?, None);
    Ok(())
}

/// Reclaiming from a dead worker has the same effect.
async fn reclaim_empties_a_long_prefetch_list(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    let feed = world.feed(WORKER);
    seed(world, &["LPUSH", &feed], |n| vec![format!("j{n}")]).await?;
    world.pass(ALIVE_MS);
    let mut moved = 0;
    loop {
        let back = short(world.broker.reclaim()).await?;
        check!(back.moved <= 1000);
        if back.moved == 0 {
            break;
        }
        moved += back.moved;
    }
    same!((moved, length(world, &world.queue()).await?), (MANY, MANY));
    same!(
        world
            .raw::<String>(&["LINDEX", &world.queue(), "-1"])
            .await?,
        "j0"
    );
    Ok(())
}

/// Leases without jobs are deleted in the same way.
async fn reclaim_forgets_leases_without_jobs(world: &World) -> Outcome {
    let lease = world.keys().lease();
    seed(world, &["ZADD", &lease], |n| {
        vec!["1".to_owned(), format!("g{n}")]
    })
    .await?;
    let mut calls = 0;
    while world.broker.running().await? > 0 {
        same!(short(world.broker.reclaim()).await?, Reclaimed::default());
        calls += 1;
    }
    same!(calls, MANY / 200);
    Ok(())
}

/// Many listeners died at once, each with a prefetched id.
async fn reclaim_takes_what_dead_listeners_left(world: &World) -> Outcome {
    let (feeds, queue) = (world.keys().prefetch_registry(), world.queue());
    seed(world, &["ZADD", &feeds], |n| {
        vec!["1".to_owned(), format!("w{n}-x {queue}")]
    })
    .await?;
    for from in (0..MANY).step_by(1000) {
        let mut pipe = redis::pipe();
        for n in from..from + 1000 {
            let feed = world.keys().feed(&format!("w{n}-x"), &queue);
            pipe.cmd("LPUSH").arg(feed).arg(format!("j{n}")).ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    let mut moved = 0;
    loop {
        let back = short(world.broker.reclaim()).await?;
        check!(back.moved <= 1000);
        if back.moved == 0 {
            break;
        }
        moved += back.moved;
    }
    same!((moved, length(world, &queue).await?), (MANY, MANY));
    same!(world.raw::<usize>(&["ZCARD", &feeds]).await?, 0);
    Ok(())
}

/// Each verb runs for one job, while 100,000 others run.
async fn one_among_many_leases(world: &World) -> Outcome {
    let lease = world.keys().lease();
    let far = (START + 1_000 * LEASE_MS).to_string();
    seed(world, &["ZADD", &lease], |n| {
        vec![far.clone(), format!("o{n}")]
    })
    .await?;
    world.put(&["j1", "j2", "j3", "j4"]).await?;
    let held = claim(world, 4).await?.jobs;
    check!(world.renew(WORKER, &held).await?.is_empty());
    short(world.broker.complete(&held[0], b"42", b"", b"")).await?;
    short(world.broker.release(&held[1])).await?;
    short(world.broker.cancel(&held[2].job, "stopped", true)).await?;
    world.pass(LEASE_MS);
    same!(short(world.broker.reclaim()).await?.requeued, ["j4"]);
    same!(world.broker.running().await?, MANY);
    Ok(())
}

/// Each verb that pushes runs while 100,000 ids wait.
async fn one_at_a_long_queue(world: &World) -> Outcome {
    seed(world, &["LPUSH", &world.queue()], |n| vec![format!("g{n}")]).await?;
    let mut job = world.job("j1")?;
    job.retries = 1;
    short(world.broker.enqueue(&[job])).await?;
    world
        .raw::<()>(&["LMOVE", &world.queue(), &world.queue(), "LEFT", "RIGHT"])
        .await?;
    let claimed = claim(world, 1).await?.jobs;
    short(world.broker.release(&claimed[0])).await?;
    let claimed = claim(world, 1).await?.jobs;
    let failure = meshwork_model::outcome::Failure::new(FailureKind::Script, "boom");
    let said = short(
        world
            .broker
            .fail(&claimed[0], &failure, b"", b"", Duration::ZERO),
    )
    .await?;
    same!(said, Failed::Requeued);
    same!(length(world, &world.queue()).await?, MANY + 1);
    world
        .raw::<()>(&["LMOVE", &world.queue(), &world.queue(), "LEFT", "RIGHT"])
        .await?;
    let claimed = claim(world, 1).await?.jobs;
    short(world.broker.complete(&claimed[0], b"42", b"", b"")).await?;
    short(world.broker.retry(&world.read("j1").await?)).await?;
    same!(
        world
            .raw::<String>(&["LINDEX", &world.queue(), "0"])
            .await?,
        "j1"
    );
    Ok(())
}

/// A queue that is too long for a walk keeps the ids, and a claim drops them.
async fn stop_and_delete_in_a_long_queue(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    seed(world, &["LPUSH", &world.queue()], |n| vec![format!("g{n}")]).await?;
    let (one, two) = (world.read("j1").await?, world.read("j2").await?);
    same!(
        short(world.broker.cancel(&one, "stopped", true)).await?,
        Cancelled::Cancelled
    );
    same!(short(world.broker.delete(&two)).await?, Deleted::Deleted);
    same!(length(world, &world.queue()).await?, MANY + 3);
    let taken = claim(world, 1).await?;
    same!((taken.jobs.len(), taken.dropped), (1, 2));
    same!(taken.jobs[0].job.id, "j3");
    Ok(())
}

/// Reads return all listeners.
async fn queues_with_many_listeners(world: &World) -> Outcome {
    let (feeds, osis, sal) = (
        world.keys().prefetch_registry(),
        world.queue(),
        world.queue_of("sal"),
    );
    let alive = (START + LEASE_MS).to_string();
    seed(world, &["ZADD", &feeds], |n| {
        vec![alive.clone(), format!("w{n}-x {osis}")]
    })
    .await?;
    let last = (START + 2 * LEASE_MS).to_string();
    let member = format!("w-last {sal}");
    world.raw::<()>(&["ZADD", &feeds, &last, &member]).await?;
    check!(world.broker.is_listened(&sal).await?);
    check!(world.broker.is_listened(&osis).await?);
    let queues = world.broker.queues().await?;
    let seen: Vec<_> = queues
        .iter()
        .map(|info| (info.queue.as_str(), info.listeners))
        .collect();
    same!(seen, [(osis.as_str(), MANY), (sal.as_str(), 1)]);
    Ok(())
}
