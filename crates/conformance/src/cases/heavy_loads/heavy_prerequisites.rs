//! 100,000 jobs with the same prerequisite, with a delay, or whose ends are not processed yet; and the bounded stream
//! of events.

use meshwork_broker::MAX_ITEMS;

use crate::cases::dependencies::prerequisites::run;
use crate::cases::heavy_loads::heavy::{MANY, short};
use crate::cases::maintenance::resolve_dependents::put_dependants;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    many_wait_for_one,
    many_fail_with_one,
    many_ends_are_still_to_be_told,
    many_are_put_off,
    events_are_bounded,
];

async fn number(world: &World, command: &str, key: &str) -> Result<usize, Failure> {
    world.raw(&[command, key]).await
}

/// Adds to a key, a thousand at a time, the arguments that `item` returns for each number.
async fn seed(world: &World, head: &[&str], item: impl Fn(usize) -> Vec<String>) -> Outcome {
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

/// The call that ends the job notifies a hundred dependents; later calls notify a thousand each.
async fn many_wait_for_one(world: &World) -> Outcome {
    put_dependants(world, MANY).await?;
    run(world, "first", true).await?;
    let mut ready = number(world, "LLEN", &world.queue()).await?;
    same!(ready, 100);
    while short(world.broker.resolve_dependents()).await? {
        let now = number(world, "LLEN", &world.queue()).await?;
        check!(now > ready && now - ready <= MAX_ITEMS);
        ready = now;
    }
    same!(number(world, "LLEN", &world.queue()).await?, MANY);
    same!(world.take_one().await?.job.id, "j0");
    let watch: usize = number(world, "EXISTS", &world.keys().watch()).await?;
    same!(watch, 0);
    Ok(())
}

/// All dependents fail with it.
async fn many_fail_with_one(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let next = format!("{}first", world.named("DEPENDENTS")?);
    for from in (0..MANY).step_by(1000) {
        let mut pipe = redis::pipe();
        for n in from..from + 1000 {
            let id = format!("j{n}");
            let set = pipe.cmd("HSET").arg(world.key(&id));
            set.arg("status").arg("dispatched").arg("mw_reply").arg("0");
            set.arg("mw_waiting").arg("\"first\"").ignore();
            pipe.cmd("RPUSH").arg(&next).arg(id).ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    run(world, "first", false).await?;
    let mut failed = 100;
    while short(world.broker.resolve_dependents()).await? {
        let now = number(world, "ZCARD", &world.keys().ended()).await?;
        check!(now > failed && now - failed <= MAX_ITEMS);
        failed = now;
    }
    same!(number(world, "ZCARD", &world.keys().ended()).await?, MANY);
    same!(number(world, "LLEN", &world.queue()).await?, 0);
    Ok(())
}

/// Most of these jobs have no dependents left.
async fn many_ends_are_still_to_be_told(world: &World) -> Outcome {
    let settle = world.named("UNRESOLVED")?;
    seed(world, &["RPUSH", &settle], |n| vec![format!("g{n}")]).await?;
    let mut calls = 1;
    while short(world.broker.resolve_dependents()).await? {
        calls += 1;
    }
    check!((MANY / MAX_ITEMS..=MANY / MAX_ITEMS + 1).contains(&calls));
    Ok(())
}

/// All jobs are due at once.
async fn many_are_put_off(world: &World) -> Outcome {
    let delayed = world.keys().delayed();
    for from in (0..MANY).step_by(1000) {
        let mut pipe = redis::pipe();
        for n in from..from + 1000 {
            let set = pipe.cmd("HSET").arg(world.key(&format!("j{n}")));
            set.arg(&["status", "dispatched", "script", "1"]);
            set.arg("mw_queue").arg(world.queue()).ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    seed(world, &["ZADD", &delayed], |n| {
        vec![n.to_string(), format!("j{n}")]
    })
    .await?;
    for left in (0..MANY / MAX_ITEMS).rev() {
        let promoted = short(world.broker.promote()).await?;
        same!(promoted.due, MAX_ITEMS);
        same!(promoted.next.is_some(), left > 0);
    }
    same!(number(world, "LLEN", &world.queue()).await?, MANY);
    same!(world.take_one().await?.job.id, "j0");
    Ok(())
}

/// The oldest events are deleted.
async fn events_are_bounded(world: &World) -> Outcome {
    let events = world.keys().events();
    for _ in 0..110 {
        let mut pipe = redis::pipe();
        for _ in 0..1000 {
            pipe.cmd("XADD")
                .arg(&events)
                .arg(&["*", "job", "old"])
                .ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    world.put(&["j1"]).await?;
    let kept = number(world, "XLEN", &events).await?;
    check!((MANY..MANY + 1_000).contains(&kept));
    let last: Vec<(String, Vec<String>)> = world
        .raw(&["XREVRANGE", &events, "+", "-", "COUNT", "1"])
        .await?;
    same!(last[0].1[1], "j1");
    Ok(())
}
