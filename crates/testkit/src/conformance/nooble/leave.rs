//! leave: a worker that has nothing in hand is forgotten.

use super::{GROUP, Outcome, Side, W1, World, cases, check, same};

cases![
    is_forgotten,
    what_it_has_in_hand_keeps_it,
    a_stream_that_is_gone_has_nobody
];

async fn known(side: &Side<'_>) -> Result<bool, super::Failure> {
    if !side.is_stream() {
        let words = ["ZSCORE", &side.source.keys().workers, W1];
        return Ok(side.world.raw::<Option<u64>>(&words).await?.is_some());
    }
    let all: redis::Value = side
        .world
        .raw(&["XINFO", "CONSUMERS", side.queue(), GROUP])
        .await?;
    Ok(format!("{all:?}").contains(W1))
}

async fn is_forgotten(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.renew(W1, &[]).await?;
        check!(known(&side).await?);
        side.verbs.release(W1, &got).await?;
        check!(side.verbs.leave(W1, &side.source).await?);
        check!(!known(&side).await?);
        same!(side.waiting().await?, ["m1"]);
    }
    Ok(())
}

async fn what_it_has_in_hand_keeps_it(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.started("m1").await?;
        side.renew(W1, &[]).await?;
        check!(!side.verbs.leave(W1, &side.source).await?);
        check!(known(&side).await?);
        same!(side.hand(W1).await?, ["m1"]);
    }
    Ok(())
}

async fn a_stream_that_is_gone_has_nobody(world: &World) -> Outcome {
    let [side, _] = Side::both(world)?;
    check!(!side.verbs.leave(W1, &side.source).await?);
    check!(!side.exists(side.queue()).await?);
    Ok(())
}
