//! A batch of 100,000 jobs, and 10,000 batches: the cost of a call does not grow with the number.

use meshwork_broker::{BatchCancelled, BatchState, Retention};
use meshwork_model::batch::Callback;

use crate::cases::dependencies::batch_ends::add_many;
use crate::cases::dependencies::batches::{batch_id, counts, open, seal, status};
use crate::cases::heavy_loads::heavy::{MANY, short};
use crate::cases::{Outcome, World, cases, check, same};

cases![a_large_batch_is_cancelled, a_large_batch_is_looked_after];

/// Bound above the number of jobs that one call cancels: it requests 100, and a step of `SSCAN` returns several
/// hundred in Valkey while a set shrinks.
const MOST_AT_ONCE: u64 = 1_000;

/// Each call cancels a part. Ids in a queue that is too long for a walk stay there, and a claim drops them.
async fn a_large_batch_is_cancelled(world: &World) -> Outcome {
    open(world, "b", &[(Callback::Done, "done")]).await?;
    add_many(world, "b", MANY).await?;
    let id = batch_id("b")?;
    let mut before = 0;
    while short(world.broker.cancel_batch(&id, "no more")).await? == BatchCancelled::GoingOn {
        let now = status(world, "b").await?.failed;
        check!(now > before && now - before < MOST_AT_ONCE);
        before = now;
    }
    let all = MANY as u64;
    same!(
        counts(world, "b").await?,
        (all, 0, all, BatchState::Cancelled)
    );
    same!(world.status("done").await?, "error");
    Ok(())
}

/// Each call finds a part of the jobs that others have ended.
async fn a_large_batch_is_looked_after(world: &World) -> Outcome {
    open(world, "b", &[(Callback::Done, "done")]).await?;
    add_many(world, "b", MANY).await?;
    seal(world, "b").await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    for from in (0..MANY).step_by(1000) {
        let mut pipe = redis::pipe();
        for n in from..from + 1000 {
            let key = world.key(&format!("j{n}"));
            pipe.cmd("HSET")
                .arg(key)
                .arg("status")
                .arg("finished")
                .ignore();
        }
        pipe.query_async::<()>(&mut world.conn().clone()).await?;
    }
    let mut before = 0;
    while status(world, "b").await?.state == BatchState::Sealed {
        world.pass(30_000);
        let (met, _) = short(world.broker.sweep_batches(Retention::default())).await?;
        let now = status(world, "b").await?.succeeded;
        check!(now > before && met <= 1500);
        check!(now - before <= 1500);
        before = now;
    }
    let all = MANY as u64;
    same!(
        counts(world, "b").await?,
        (all, all, 0, BatchState::Succeeded)
    );
    same!(world.waiting().await?, ["done"]);
    Ok(())
}
