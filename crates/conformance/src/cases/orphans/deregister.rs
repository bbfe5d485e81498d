//! Registrations of listeners: prefetched ids of a worker that stops or dies return to their queues.

use meshwork_broker::conn::Conn;
use meshwork_broker::{Listener, Reclaimed, Renewal};

use crate::cases::harness::world::{ALIVE_MS, LEASE, LEASE_MS, PATIENCE, WORKER, ids};
use crate::faulty::Faulty;

use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    leaving_hands_back_in_order,
    leaving_takes_the_listener_off_the_list,
    leaving_leaves_the_others,
    leaving_hands_back_from_every_queue,
    leaving_hands_back_more_than_one_call_may,
    leaving_twice_changes_nothing,
    a_listener_that_lives_keeps_what_came,
    a_dead_listeners_ids_go_back_in_order,
    a_dead_listener_is_taken_off_the_list,
    a_dead_listener_with_many_ids_takes_several_calls,
    an_id_that_comes_after_death_goes_back,
    dead_listeners_of_several_queues_are_told_apart,
];

/// A time long after the death of a listener, in milliseconds.
const LONG: u64 = 3_600_000;

async fn leave(world: &World, worker: &str) -> Result<usize, Failure> {
    let queues = [world.queue()];
    let listener = Listener {
        worker,
        queues: &queues,
    };
    Ok(world.broker.deregister_prefetch(listener).await?)
}

/// Fills a prefetch list, the oldest id first.
async fn fed(world: &World, worker: &str, ids: &[&str]) -> Outcome {
    let feed = world.feed(worker);
    let push: Vec<_> = ["LPUSH", feed.as_str()]
        .iter()
        .chain(ids)
        .copied()
        .collect();
    world.raw(&push).await
}

/// Prefetched ids of a worker that stops become the next ones of its queue.
async fn leaving_hands_back_in_order(world: &World) -> Outcome {
    world.push("j3").await?;
    fed(world, WORKER, &["j1", "j2"]).await?;
    same!(leave(world, WORKER).await?, 2);
    same!(world.waiting().await?, ["j1", "j2", "j3"]);
    check!(world.list(&world.feed(WORKER)).await?.is_empty());
    Ok(())
}

/// A worker that left is no longer registered.
async fn leaving_takes_the_listener_off_the_list(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    check!(world.broker.is_listened(&world.queue()).await?);
    same!(leave(world, WORKER).await?, 0);
    check!(!world.broker.is_listened(&world.queue()).await?);
    world.unchanged("").await
}

/// The prefetch list and the registration of another worker stay.
async fn leaving_leaves_the_others(world: &World) -> Outcome {
    world.renew("w2-b", &[]).await?;
    fed(world, "w2-b", &["j1"]).await?;
    let before = world.all().await?;
    world.renew(WORKER, &[]).await?;
    leave(world, WORKER).await?;
    world.unchanged(&before).await
}

/// Registers a worker at two queues, with an id in the prefetch list of each.
async fn on_two_queues(world: &World) -> Result<[String; 2], Failure> {
    let queues = [world.queue_of("osis:group:io"), world.queue()];
    let renewal = Renewal {
        held: &[],
        lease: LEASE,
        listener: Listener {
            worker: WORKER,
            queues: &queues,
        },
        alive: LEASE,
    };
    world.broker.renew(renewal).await?;
    for (queue, id) in queues.iter().zip(["g1", "t1"]) {
        let feed = world.keys().feed(WORKER, queue);
        world.raw::<()>(&["LPUSH", &feed, id]).await?;
    }
    Ok(queues)
}

/// Each id returns to its queue, and the worker is registered at none.
async fn leaving_hands_back_from_every_queue(world: &World) -> Outcome {
    let queues = on_two_queues(world).await?;
    let listener = Listener {
        worker: WORKER,
        queues: &queues,
    };
    same!(world.broker.deregister_prefetch(listener).await?, 2);
    same!(world.list(&queues[0]).await?, ["g1"]);
    same!(world.list(&queues[1]).await?, ["t1"]);
    for queue in &queues {
        check!(!world.broker.is_listened(queue).await?);
    }
    Ok(())
}

/// Any number of ids returns, in calls that each move a bounded number.
async fn leaving_hands_back_more_than_one_call_may(world: &World) -> Outcome {
    let names: Vec<_> = (0..2500).map(|n| format!("j{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    world.renew(WORKER, &[]).await?;
    fed(world, WORKER, &names).await?;
    let counted = Faulty::new(world.conn().clone(), None);
    let queues = [world.queue()];
    let listener = Listener {
        worker: WORKER,
        queues: &queues,
    };
    let broker = world.broker_over(Conn::new(counted.clone()));
    // A script that the server does not have takes three commands.
    world.broker.load().await?;
    same!(broker.deregister_prefetch(listener).await?, 2500);
    same!(counted.commands(), 3);
    same!(world.waiting().await?, names);
    same!(world.listener(WORKER).await?, None);
    Ok(())
}

/// A call that is repeated after a broken connection changes nothing.
async fn leaving_twice_changes_nothing(world: &World) -> Outcome {
    fed(world, WORKER, &["j1"]).await?;
    leave(world, WORKER).await?;
    let before = world.all().await?;
    same!(leave(world, WORKER).await?, 0);
    world.unchanged(&before).await
}

/// While a worker renews its registration, its prefetched ids stay.
async fn a_listener_that_lives_keeps_what_came(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    fed(world, WORKER, &["j1"]).await?;
    let before = world.all().await?;
    world.pass(ALIVE_MS - 1);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    world.unchanged(&before).await
}

/// Prefetched ids of a dead worker become the next ones of its queue, when its registration has expired.
async fn a_dead_listeners_ids_go_back_in_order(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    world.renew(WORKER, &[]).await?;
    fed(world, WORKER, &["j1", "j2"]).await?;
    for id in ["j1", "j2"] {
        world.raw::<()>(&["LREM", &world.queue(), "0", id]).await?;
    }
    world.pass(ALIVE_MS);
    let back = world.broker.reclaim().await?;
    same!(back.moved, 2);
    same!(world.waiting().await?, ["j1", "j2", "j3"]);
    let taken = world.claim("w2-b", &[world.queue()], 3).await?;
    same!(ids(&taken.jobs), ["j1", "j2", "j3"]);
    Ok(())
}

/// Its registration ends at its expiry, and leaves no key for ever.
async fn a_dead_listener_is_taken_off_the_list(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    world.pass(ALIVE_MS);
    check!(!world.broker.is_listened(&world.queue()).await?);
    world.broker.reclaim().await?;
    check!(!world.broker.is_listened(&world.queue()).await?);
    world.pass(LONG);
    world.broker.reclaim().await?;
    world.unchanged("").await
}

/// One call moves 1,000 ids; the registration stays until all are moved.
async fn a_dead_listener_with_many_ids_takes_several_calls(world: &World) -> Outcome {
    let names: Vec<_> = (0..2500).map(|n| format!("j{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    world.renew(WORKER, &[]).await?;
    fed(world, WORKER, &names).await?;
    world.pass(LONG);
    let mut moved = Vec::new();
    for _ in 0..4 {
        moved.push(world.broker.reclaim().await?.moved);
    }
    same!(moved, [1000, 1000, 500, 0]);
    same!(world.waiting().await?, names);
    same!(world.listener(WORKER).await?, None);
    Ok(())
}

/// The server still has the blocked call of a worker that hangs, which may prefetch an id after its registration
/// expired: that id returns too.
async fn an_id_that_comes_after_death_goes_back(world: &World) -> Outcome {
    world.renew(WORKER, &[]).await?;
    let blocking = world.broker.blocking_conn().await?;
    let queue = world.queue();
    let hung = world
        .broker
        .wait_for_job(&blocking, WORKER, &queue, PATIENCE);
    let others = async {
        world.pass(ALIVE_MS);
        world.broker.reclaim().await?;
        world.put(&["j1"]).await
    };
    let (came, done) = tokio::join!(hung, others);
    done?;
    check!(came?);
    same!(world.list(&world.feed(WORKER)).await?, ["j1"]);
    same!(world.broker.reclaim().await?.moved, 1);
    same!(world.waiting().await?, ["j1"]);
    Ok(())
}

/// A worker with two queues died: each id returns to its own queue.
async fn dead_listeners_of_several_queues_are_told_apart(world: &World) -> Outcome {
    let queues = on_two_queues(world).await?;
    world.pass(LEASE_MS);
    same!(world.broker.reclaim().await?.moved, 2);
    same!(world.list(&queues[0]).await?, ["g1"]);
    same!(world.list(&queues[1]).await?, ["t1"]);
    Ok(())
}
