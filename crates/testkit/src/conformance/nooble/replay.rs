//! replay: a dead letter gets its runs again. And how dead letters are looked at.

use meshwork_broker::nooble::{End, Failed};

use super::{Outcome, Side, World, cases, check, same};

cases![
    has_all_its_runs_again,
    what_is_not_there_is_not_replayed,
    the_latest_come_first
];

async fn has_all_its_runs_again(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.fail(&got, 1, End::default()).await?;
        let dead = side.verbs.dead(&side.source, None, 10).await?;
        let id = &dead.letters[0].id;
        check!(side.verbs.dead_letter(&side.source, id).await? == Some(dead.letters[0].clone()));
        check!(side.verbs.replay(&side.source, id).await?);
        same!(side.dead().await?, []);
        same!(side.waiting().await?, ["m1"]);
        let got = side.receive().await?;
        same!(side.fail(&got, 2, End::default()).await?, Failed::Again(1));
    }
    Ok(())
}

async fn what_is_not_there_is_not_replayed(world: &World) -> Outcome {
    for side in Side::both(world)? {
        check!(!side.verbs.replay(&side.source, "1-1").await?);
        same!(side.verbs.dead_letter(&side.source, "1-1").await?, None);
        check!(!side.exists(side.queue()).await?);
    }
    Ok(())
}

async fn the_latest_come_first(world: &World) -> Outcome {
    for side in Side::both(world)? {
        for message in ["m1", "m2", "m3"] {
            let got = side.started(message).await?;
            side.fail(&got, 1, End::default()).await?;
        }
        let first = side.verbs.dead(&side.source, None, 2).await?;
        same!(first.letters[0].message, b"m3");
        let rest = side
            .verbs
            .dead(&side.source, first.next.as_deref(), 2)
            .await?;
        same!(rest.letters.len(), 1);
        same!(rest.letters[0].message, b"m1");
        same!(rest.next, None);
        world.raw::<()>(&["DEL", &side.source.keys().dead]).await?;
    }
    Ok(())
}
