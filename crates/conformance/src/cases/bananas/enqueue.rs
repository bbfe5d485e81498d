//! enqueue: stores record and id in one step, as the chosen variant of client does.

use meshwork_broker::bananas::Enqueued;
use meshwork_model::bananas::ClientVariant;

use super::{Outcome, Side, World, cases, check, same};

cases![
    stores_record_and_id,
    stands_where_the_make_pushes,
    waits_for_its_time,
    go_waits_for_whole_seconds,
    a_repeated_call_changes_nothing,
    several_keep_their_order,
    a_key_of_another_kind_changes_nothing,
];

/// The record is the client's, with the server's time.
async fn stores_record_and_id(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let outcome = side
        .verbs
        .enqueue(&[side.job("j1")?], ClientVariant::Go)
        .await?;
    same!(outcome, [Enqueued::Stored]);
    let expected = "{\"id\":\"j1\",\"name\":\"count\",\"payload\":{\"n\":1},\"status\":\"pending\",\
        \"priority\":\"normal\",\"created_at\":\"2023-11-14T22:13:20.123000Z\",\
        \"updated_at\":\"2023-11-14T22:13:20.123000Z\",\"attempts\":0,\"max_retries\":3,\
        \"routing_key\":\"default\"}";
    same!(side.record("j1").await?.as_deref(), Some(expected));
    same!(side.ttl(&side.keys().job("j1")).await?, -1);
    same!(side.list(&side.plain()).await?, ["j1"]);
    Ok(())
}

/// Each variant has its own list for a route.
async fn stands_where_the_make_pushes(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for (id, peer) in ["a", "b", "c", "d"].into_iter().zip(ClientVariant::ALL) {
        let mut job = side.job(id)?;
        job.route = Some("gpu".parse()?);
        side.verbs.enqueue(&[job], peer).await?;
    }
    let routed = side.keys().routed(&"gpu".parse()?, Default::default());
    same!(side.list(&routed).await?, ["a", "b"]);
    same!(side.list(&side.plain()).await?, ["c", "d"]);
    Ok(())
}

/// A delayed job is in no list.
async fn waits_for_its_time(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut job = side.job("j1")?;
    job.at_ms = Some(1_700_000_100_250);
    side.verbs
        .enqueue(&[job], ClientVariant::TypeScript)
        .await?;
    let scheduled = side.keys().scheduled();
    let score: Option<String> = world.raw(&["ZSCORE", &scheduled, "j1"]).await?;
    same!(score.as_deref(), Some("1700000100.25"));
    check!(side.says("j1", "\"status\":\"scheduled\"").await?);
    check!(side.says("j1", "\"2023-11-14T22:15:00.250000Z\"").await?);
    check!(side.list(&side.plain()).await?.is_empty());
    Ok(())
}

/// Go's scheduler compares whole seconds: no job comes early.
async fn go_waits_for_whole_seconds(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut job = side.job("j1")?;
    job.at_ms = Some(1_700_000_100_250);
    side.verbs.enqueue(&[job], ClientVariant::Go).await?;
    let scheduled = side.keys().scheduled();
    let score: Option<String> = world.raw(&["ZSCORE", &scheduled, "j1"]).await?;
    same!(score.as_deref(), Some("1700000101"));
    Ok(())
}

/// A call whose answer was lost can be repeated.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1"]).await?;
    let before = world.all().await?;
    let jobs = [side.job("j1")?];
    same!(
        side.verbs.enqueue(&jobs, ClientVariant::Go).await?,
        [Enqueued::Exists]
    );
    world.unchanged(&before).await
}

/// The first job is the next to run.
async fn several_keep_their_order(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut later = side.job("j2")?;
    later.at_ms = Some(1);
    let jobs = [side.job("j1")?, later, side.job("j3")?];
    let outcome = side.verbs.enqueue(&jobs, ClientVariant::Python).await?;
    same!(outcome, [Enqueued::Stored; 3]);
    same!(side.list(&side.plain()).await?, ["j1", "j3"]);
    check!(side.says("j3", "\"id\": \"j3\"").await?);
    Ok(())
}

/// If the id cannot be pushed, the record is not written either.
async fn a_key_of_another_kind_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.set(&side.plain(), "x").await?;
    side.set(&side.keys().scheduled(), "x").await?;
    let before = world.all().await?;
    let mut later = side.job("j1")?;
    later.at_ms = Some(1);
    let first = {
        let mut job = side.job("j0")?;
        job.route = Some("gpu".parse()?);
        job
    };
    check!(
        side.verbs
            .enqueue(&[later], ClientVariant::Go)
            .await
            .is_err()
    );
    let both = [first, side.job("j1")?];
    check!(side.verbs.enqueue(&both, ClientVariant::Go).await.is_err());
    world.unchanged(&before).await
}
