//! has_service: finds a service by its keys, and creates none.

use super::{Outcome, SERVICE, Side, W1, World, cases, check, same};

cases![
    one_that_never_was_is_unknown,
    a_queue_makes_it_known,
    a_worker_of_ours_makes_it_known,
    a_dead_letter_makes_it_known,
];

async fn one_that_never_was_is_unknown(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let before = world.all().await?;
        check!(!side.verbs.has_service(SERVICE).await?);
        check!(!side.verbs.has_service("").await?);
        same!(world.all().await?, before);
    }
    Ok(())
}

async fn a_queue_makes_it_known(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.send(&["m1"]).await?;
        check!(side.verbs.has_service(SERVICE).await?);
        check!(!side.verbs.has_service("demo2").await?);
    }
    Ok(())
}

async fn a_worker_of_ours_makes_it_known(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.renew(W1, &[]).await?;
        check!(side.verbs.has_service(SERVICE).await?);
    }
    Ok(())
}

async fn a_dead_letter_makes_it_known(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let words = ["XADD", &side.source.keys().dead, "*", "data", "m1"];
        let _: String = world.raw(&words).await?;
        check!(side.verbs.has_service(SERVICE).await?);
        let _: u64 = world.raw(&["DEL", &side.source.keys().dead]).await?;
    }
    Ok(())
}
