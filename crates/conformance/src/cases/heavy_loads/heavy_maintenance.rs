//! 100,000 items wherever the scripts for maintenance and migrations walk: each call stays short, and repeated calls
//! process all items.

use std::time::Duration;

use meshwork_broker::{Claim, Controlled, PrefetchLists, Registration, Retention};

use crate::cases::harness::legacy_worker::{AGE, migrate, old, pop, write};
use crate::cases::harness::world::{LEASE, START, WORKER};
use crate::cases::heavy_loads::heavy::{MANY, seed, short};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    watch_walks_through_few_long_lists_in_one_call,
    watch_looks_at_all,
    control_goes_round_a_long_queue,
    control_empties_a_queue_of_ended_jobs,
    control_stops_many_waiting_jobs,
    prune_forgets_all,
    register_deletes_many_entries,
    claims_beside_a_long_old_list,
];

/// The lists have 100,000 entries in total, and one more.
async fn watch_walks_through_few_long_lists_in_one_call(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    world.put(&["t1", "t2", "t3"]).await?;
    seed(world, &["LPUSH", &old(world)], |n| vec![format!("g{n}")]).await?;
    world.put(&["h1", "h2"]).await?;
    for id in ["a1", "a2", "a3"] {
        world.put(&[id]).await?;
        same!(pop(world).await?.as_deref(), Some(id));
    }
    world.pass(AGE);
    // Ids at the old end are found at once; each of the others takes a walk.
    let watch = world.keys().watch();
    let cheap = (START + AGE - 1).to_string();
    world
        .raw::<()>(&["ZADD", &watch, &cheap, "t1", &cheap, "t2", &cheap, "t3"])
        .await?;
    for looked in [4, 1, 1, 1, 1, 0] {
        same!(short(world.broker.check_orphans()).await?.looked, looked);
    }
    world.pass(AGE);
    let mut pushed = Vec::new();
    for _ in 0..9 {
        pushed.extend(short(world.broker.check_orphans()).await?.pushed);
    }
    pushed.sort();
    same!(pushed, ["a1", "a2", "a3"]);
    Ok(())
}

/// Each call checks 200 jobs.
async fn watch_looks_at_all(world: &World) -> Outcome {
    let watch = world.keys().watch();
    seed(world, &["ZADD", &watch], |n| {
        vec!["1".to_owned(), format!("g{n}")]
    })
    .await?;
    let mut looked = 0;
    loop {
        let now = short(world.broker.check_orphans()).await?.looked;
        check!(now <= 200);
        looked += now;
        if now == 0 {
            break;
        }
    }
    same!(looked, MANY);
    Ok(())
}

fn controlled<'a>(queues: &'a [String], held: &'a [String]) -> Controlled<'a> {
    Controlled {
        worker: "w1",
        queues,
        types: &[],
        held,
        turn: Duration::from_secs(1),
    }
}

/// Requests for jobs of other workers do not keep a worker from its own, which is last.
async fn control_goes_round_a_long_queue(world: &World) -> Outcome {
    let queues = [world.keys().control_queue_type(&"osis".parse()?)];
    for id in ["j1", "other"] {
        write(world, id, &["status", "started"]).await?;
    }
    seed(world, &["LPUSH", &queues[0]], |n| {
        let id = format!("o{}", n % 10);
        vec![id]
    })
    .await?;
    for n in 0..10 {
        write(world, &format!("o{n}"), &["status", "started"]).await?;
    }
    world.raw::<()>(&["LPUSH", &queues[0], "j1"]).await?;
    let held = ["j1".to_owned()];
    let mut calls = 0;
    loop {
        calls += 1;
        let response = short(world.broker.control(controlled(&queues, &held))).await?;
        if response.stop == ["j1"] {
            break;
        }
        check!(calls < 200);
    }
    check!(calls > 90);
    Ok(())
}

/// Each call drops a thousand ids.
async fn control_empties_a_queue_of_ended_jobs(world: &World) -> Outcome {
    let queues = [world.keys().control_queue_type(&"osis".parse()?)];
    seed(world, &["LPUSH", &queues[0]], |n| vec![format!("g{n}")]).await?;
    for _ in 0..MANY / 1_000 {
        short(world.broker.control(controlled(&queues, &[]))).await?;
    }
    same!(world.raw::<usize>(&["LLEN", &queues[0]]).await?, 0);
    Ok(())
}

/// Each call cancels a hundred jobs, each of which may need a walk through its queue.
async fn control_stops_many_waiting_jobs(world: &World) -> Outcome {
    let queues = [world.keys().control_queue_type(&"osis".parse()?)];
    let names: Vec<_> = (0..950).map(|n| format!("j{n}")).collect();
    world
        .put(&names.iter().map(String::as_str).collect::<Vec<_>>())
        .await?;
    let mut push = redis::cmd("LPUSH");
    push.arg(&queues[0]).arg(&names);
    push.query_async::<()>(&mut world.conn().clone()).await?;
    for left in [850, 750, 650, 550, 450, 350, 250, 150, 50, 0] {
        short(world.broker.control(controlled(&queues, &[]))).await?;
        same!(world.waiting().await?.len(), left);
    }
    same!(world.raw::<usize>(&["LLEN", &queues[0]]).await?, 0);
    Ok(())
}

/// Each call deletes a thousand jobs.
async fn prune_forgets_all(world: &World) -> Outcome {
    for from in (0..MANY).step_by(1_000) {
        let mut pipe = redis::pipe();
        for n in from..from + 1_000 {
            let id = format!("j{n}");
            pipe.cmd("HSET").arg(world.key(&id));
            pipe.arg("status").arg("finished").ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    let ended = world.keys().ended();
    seed(world, &["ZADD", &ended], |n| {
        vec![(n + 1).to_string(), format!("j{n}")]
    })
    .await?;
    let few = Retention {
        age: Duration::from_secs(2_000_000_000),
        count: MANY / 2,
    };
    let mut gone = 0;
    loop {
        let (now, more) = short(world.broker.prune(few)).await?;
        check!(now <= 1_000);
        gone += now;
        if !more {
            break;
        }
    }
    same!(gone, MANY / 2);
    let none = Retention {
        age: Duration::ZERO,
        count: MANY,
    };
    while short(world.broker.prune(none)).await?.1 {}
    same!(world.raw::<usize>(&["ZCARD", &ended]).await?, 0);
    same!(
        world.raw::<bool>(&["EXISTS", &world.key("j99999")]).await?,
        false
    );
    Ok(())
}

/// Each call removes a thousand entries.
async fn register_deletes_many_entries(world: &World) -> Outcome {
    let actors = world.keys().registrations();
    seed(world, &["ZADD", &actors], |n| {
        vec!["1".to_owned(), format!("a{n}")]
    })
    .await?;
    let key = format!("{}osis:default:w1", world.keys().presence_prefix());
    let presence = Registration {
        key: &key,
        value: "{1}",
        mark: "1",
        over: None,
    };
    for left in (0..MANY / 1_000).rev() {
        same!(short(world.broker.register(presence)).await?, None);
        let known: usize = world.raw(&["ZCARD", &actors]).await?;
        same!(known, left * 1_000 + 1);
    }
    Ok(())
}

/// Jobs that old workers run are dropped without a walk through the old list.
async fn claims_beside_a_long_old_list(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let names: Vec<_> = (0..500).map(|n| format!("j{n}")).collect();
    world
        .put(&names.iter().map(String::as_str).collect::<Vec<_>>())
        .await?;
    world.raw::<()>(&["DEL", &old(world)]).await?;
    seed(world, &["LPUSH", &old(world)], |n| vec![format!("g{n}")]).await?;
    for id in &names {
        write(world, id, &["status", "started"]).await?;
    }
    world.put(&["last"]).await?;
    let claim = Claim {
        queues: &[world.queue()],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 501,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: &world.token(),
    };
    let taken = short(world.broker.claim(claim)).await?;
    same!((taken.jobs.len(), taken.dropped), (1, 500));
    Ok(())
}
