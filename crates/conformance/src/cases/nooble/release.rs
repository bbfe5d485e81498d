//! release: a message returns to its queue, without a counted run.

use super::{Outcome, Side, W1, W2, World, cases, check, same, texts};

cases![goes_back, is_the_next_of_a_list, refuses_another_worker];

async fn goes_back(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        check!(side.verbs.release(W1, &got).await?);
        same!(side.hand(W1).await?, Vec::<String>::new());
        same!(side.waiting().await?, ["m1"]);
        check!(!side.exists(&side.tries("m1")).await?);
        let again = side.receive_as(W2, 2).await?;
        same!(texts(&again), ["m1"]);
        same!(again[0].lost, 0);
        check!(!side.verbs.release(W1, &got).await?);
    }
    Ok(())
}

async fn is_the_next_of_a_list(world: &World) -> Outcome {
    let [stream, list] = Side::both(world)?;
    for (side, order) in [(stream, ["m2", "m1"]), (list, ["m1", "m2"])] {
        side.send(&["m1", "m2"]).await?;
        let got = side.receive().await?;
        side.verbs.release(W1, &got).await?;
        same!(texts(&side.receive_as(W1, 2).await?), order);
    }
    Ok(())
}

async fn refuses_another_worker(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        let before = world.all().await?;
        check!(!side.verbs.release(W2, &got).await?);
        world.unchanged(&before).await?;
    }
    Ok(())
}
