//! 100,000 jobs of Bananas: each call stays short, and repeated calls process all jobs.

use meshwork_broker::bananas::{Claim, Completed, Completion};
use meshwork_model::bananas::ClientVariant;

use super::{AGE, Outcome, Side, TOOK, World, cases, check, same};
use crate::cases::harness::world::{LEASE, WORKER};
use crate::cases::heavy_loads::heavy::{MANY, seed, short};

cases![
    claims_stay_short,
    ends_stay_short,
    what_is_due_at_one_moment_is_moved_bit_by_bit,
    looks_at_the_oldest_that_run,
];

fn id(n: usize) -> Vec<String> {
    vec![format!("j{n}")]
}

fn due(n: usize) -> Vec<String> {
    vec!["1".to_owned(), format!("j{n}")]
}

/// No call takes more than a thousand jobs.
async fn claims_stay_short(world: &World) -> Outcome {
    let side = Side::of(world)?;
    seed(world, &["LPUSH", &side.plain()], id).await?;
    let lists = [side.plain()];
    let claim = Claim {
        lists: &lists,
        want: 1_000,
        lease: LEASE,
        worker: WORKER,
        token: "t",
    };
    let taken = short(side.verbs.claim(claim)).await?;
    same!(taken.jobs.len(), 1_000);
    check!(taken.more);
    Ok(())
}

/// One call ends a thousand jobs, while the list of running jobs has very many foreign entries.
async fn ends_stay_short(world: &World) -> Outcome {
    let side = Side::of(world)?;
    seed(world, &["LPUSH", &side.keys().processing()], |n| {
        vec![format!("theirs-{n}")]
    })
    .await?;
    seed(world, &["LPUSH", &side.plain()], id).await?;
    let taken = side.take(1_000).await?;
    let ended: Vec<_> = taken
        .iter()
        .map(|claimed| Completion {
            claimed,
            result: Some("1"),
            took: TOOK,
        })
        .collect();
    let outcome = short(side.verbs.complete(&ended)).await?;
    check!(
        outcome
            .iter()
            .all(|outcome| *outcome == Completed::Finished)
    );
    let left: usize = world.raw(&["LLEN", &side.keys().processing()]).await?;
    same!((outcome.len(), left), (1_000, MANY));
    Ok(())
}

/// Ids without records are the slowest: each becomes a dead letter.
async fn what_is_due_at_one_moment_is_moved_bit_by_bit(world: &World) -> Outcome {
    let side = Side::of(world)?;
    seed(world, &["ZADD", &side.keys().scheduled()], due).await?;
    let (mut moved, mut calls) = (0, 0);
    loop {
        let due = short(side.verbs.due()).await?;
        if due.is_empty() {
            break;
        }
        moved += short(side.verbs.promote(&due, ClientVariant::Go))
            .await?
            .moved;
        calls += 1;
    }
    same!((moved, calls), (MANY, MANY / 250));
    Ok(())
}

/// Each call checks a thousand entries.
async fn looks_at_the_oldest_that_run(world: &World) -> Outcome {
    let side = Side::of(world)?;
    seed(world, &["LPUSH", &side.keys().processing()], id).await?;
    short(side.verbs.orphans(AGE)).await?;
    let seen = side.keys().seen();
    same!(world.raw::<usize>(&["ZCARD", &seen]).await?, 1_000);
    world.pass(600_000);
    let orphans = short(side.verbs.orphans(AGE)).await?;
    same!(orphans.len(), 1_000);
    same!(orphans[0].id, b"j0");
    check!(short(side.verbs.rescue(&orphans[0], ClientVariant::Go)).await?);
    Ok(())
}
