//! replay: a dead letter gets its runs again; and the list of dead letters.

use meshwork_broker::Error;
use meshwork_broker::nooble::{Completion, Failed, RetriedDead};

use super::{Outcome, Side, World, cases, check, same};

cases![
    has_all_its_runs_again,
    what_is_not_there_is_not_replayed,
    what_came_from_the_other_dialect_stays,
    a_queue_of_another_kind_is_named,
    an_older_letter_goes_where_it_is_told,
    the_latest_come_first
];

async fn has_all_its_runs_again(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.fail(&got, 1, Completion::default()).await?;
        let dead = side.verbs.dead(&side.source, None, 10).await?;
        let id = &dead.letters[0].id;
        check!(side.verbs.dead_letter(&side.source, id).await? == Some(dead.letters[0].clone()));
        same!(
            side.verbs.retry_dead(&side.source, id).await?,
            RetriedDead::Back
        );
        same!(side.dead().await?, []);
        same!(side.waiting().await?, ["m1"]);
        let got = side.receive().await?;
        same!(
            side.fail(&got, 2, Completion::default()).await?,
            Failed::Again(1)
        );
    }
    Ok(())
}

async fn what_is_not_there_is_not_replayed(world: &World) -> Outcome {
    for side in Side::both(world)? {
        same!(
            side.verbs.retry_dead(&side.source, "1-1").await?,
            RetriedDead::Absent
        );
        same!(side.verbs.dead_letter(&side.source, "1-1").await?, None);
        check!(!side.exists(side.queue()).await?);
    }
    Ok(())
}

async fn what_came_from_the_other_dialect_stays(world: &World) -> Outcome {
    let [streams, lists] = Side::both(world)?;
    for (side, other) in [(&streams, &lists), (&lists, &streams)] {
        let got = side.started("m1").await?;
        side.fail(&got, 1, Completion::default()).await?;
        let dead = side.verbs.dead(&side.source, None, 10).await?;
        let letter = &dead.letters[0];
        same!(letter.queue.as_deref(), Some(side.queue()));
        let before = world.all().await?;
        let outcome = other.verbs.retry_dead(&other.source, &letter.id).await?;
        same!(outcome, RetriedDead::Elsewhere(side.queue().to_owned()));
        world.unchanged(&before).await?;
    }
    Ok(())
}

async fn a_queue_of_another_kind_is_named(world: &World) -> Outcome {
    for side in Side::both(world)? {
        let got = side.started("m1").await?;
        side.fail(&got, 1, Completion::default()).await?;
        let dead = side.verbs.dead(&side.source, None, 10).await?;
        world.raw::<()>(&["DEL", side.queue()]).await?;
        world.raw::<()>(&["SET", side.queue(), "x"]).await?;
        let before = world.all().await?;
        let refused = side
            .verbs
            .retry_dead(&side.source, &dead.letters[0].id)
            .await;
        let what = format!("{} (now a string)", side.queue());
        check!(matches!(refused, Err(Error::WrongKind { keys, .. }) if keys.contains(&what)));
        world.unchanged(&before).await?;
        world
            .raw::<()>(&["DEL", side.queue(), &side.source.keys().dead])
            .await?;
    }
    Ok(())
}

async fn an_older_letter_goes_where_it_is_told(world: &World) -> Outcome {
    for side in Side::both(world)? {
        side.verbs.prepare(&side.source).await?;
        let dead = &side.source.keys().dead;
        world
            .raw::<()>(&["XADD", dead, "1-1", "data", "m1"])
            .await?;
        let outcome = side.verbs.retry_dead(&side.source, "1-1").await?;
        same!(outcome, RetriedDead::Back);
        same!(side.waiting().await?, ["m1"]);
        world.raw::<()>(&["DEL", dead]).await?;
    }
    Ok(())
}

async fn the_latest_come_first(world: &World) -> Outcome {
    for side in Side::both(world)? {
        for message in ["m1", "m2", "m3"] {
            let got = side.started(message).await?;
            side.fail(&got, 1, Completion::default()).await?;
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
