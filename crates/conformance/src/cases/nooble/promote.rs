//! promote: a failed message returns to its queue after its pause.

use std::time::Duration;

use meshwork_broker::nooble::Completion;

use super::{Outcome, Side, W1, World, cases, check, same, texts};
use crate::cases::harness::world::START;

cases![
    goes_back_when_it_is_due,
    says_when_the_next_one_is,
    moves_the_earliest_first
];

async fn goes_back_when_it_is_due(world: &World) -> Outcome {
    for side in Side::both(world)? {
        world.at(START);
        let got = side.started("m 1").await?;
        side.fail(&got, 2, Completion::default()).await?;
        world.pass(999);
        same!(
            side.verbs.promote(&side.source).await?,
            (0, Some(Duration::from_millis(1)))
        );
        world.pass(1);
        same!(side.verbs.promote(&side.source).await?, (1, None));
        same!(side.waiting().await?, ["m 1"]);
        check!(!side.exists(&side.source.keys().delayed).await?);
        same!(side.verbs.promote(&side.source).await?, (0, None));
    }
    Ok(())
}

async fn says_when_the_next_one_is(world: &World) -> Outcome {
    for side in Side::both(world)? {
        same!(side.verbs.promote(&side.source).await?, (0, None));
        for (message, due) in [("m1", 100), ("m2", 2_500)] {
            let due = (world.now() + due).to_string();
            let delayed = &side.source.keys().delayed;
            let member = format!("t {message}");
            world.raw::<()>(&["ZADD", delayed, &due, &member]).await?;
        }
        world.pass(100);
        let next = side.verbs.promote(&side.source).await?;
        same!(next, (1, Some(Duration::from_millis(2_400))));
        world.pass(5_000);
        same!(side.verbs.promote(&side.source).await?, (1, None));
    }
    Ok(())
}

async fn moves_the_earliest_first(world: &World) -> Outcome {
    let [stream, list] = Side::both(world)?;
    for (side, order) in [(stream, ["m1", "m2"]), (list, ["m2", "m1"])] {
        side.send(&[]).await?;
        let delayed = &side.source.keys().delayed;
        world
            .raw::<()>(&["ZADD", delayed, "2", "a m2", "1", "b m1"])
            .await?;
        same!(side.verbs.promote(&side.source).await?.0, 2);
        same!(texts(&side.receive_as(W1, 2).await?), order);
    }
    Ok(())
}
