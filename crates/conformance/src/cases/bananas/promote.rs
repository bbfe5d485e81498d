//! promote: a due job goes to the list of its route, once.

use std::time::Duration;

use meshwork_broker::bananas::Due;
use meshwork_model::bananas::ClientVariant;
use meshwork_model::route::Priority;

use super::{Outcome, Side, World, cases, check, same};
use crate::cases::harness::world::START;

cases![
    moves_what_is_due_to_its_route,
    leaves_what_is_not_due,
    tells_when_to_look_again,
    the_record_loses_its_time_only,
    two_move_it_once,
    what_has_changed_meanwhile_is_left,
    an_entry_without_a_record_is_dead_with_the_reason,
    a_naive_time_holds_up_nothing,
    a_list_of_another_kind_holds_up_no_other,
];

async fn schedule(side: &Side<'_>, id: &str, score: &str, record: &str) -> Outcome {
    side.set(&side.keys().job(id), record).await?;
    let scheduled = side.keys().scheduled();
    side.world.raw(&["ZADD", &scheduled, score, id]).await
}

/// The record has the route.
async fn moves_what_is_due_to_its_route(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let record = "{\"routing_key\":\"gpu\",\"priority\":\"low\",\"scheduled_for\":\"x\"}";
    schedule(&side, "j1", "1700000000", record).await?;
    schedule(&side, "j2", "1700000000.123", "{}").await?;
    let gpu = side.keys().routed(&"gpu".parse()?, Priority::Low);
    side.push(&gpu, "j0").await?;
    let outcome = side.promote().await?;
    same!((outcome.moved, outcome.buried), (2, 0));
    same!(side.list(&gpu).await?, ["j0", "j1"]);
    same!(side.list(&side.plain()).await?, ["j2"]);
    let left: u8 = world.raw(&["ZCARD", &side.keys().scheduled()]).await?;
    same!(left, 0);
    Ok(())
}

/// The time is exact to the millisecond.
async fn leaves_what_is_not_due(world: &World) -> Outcome {
    let side = Side::of(world)?;
    schedule(&side, "j1", "1700000000.124", "{}").await?;
    let before = world.all().await?;
    same!(side.promote().await?.moved, 0);
    world.unchanged(&before).await?;
    world.at(START + 1);
    same!(side.promote().await?.moved, 1);
    Ok(())
}

/// The answer has the time of the next due job.
async fn tells_when_to_look_again(world: &World) -> Outcome {
    let side = Side::of(world)?;
    same!(side.verbs.due().await?, Due::default());
    schedule(&side, "j0", "1700000000", "{}").await?;
    schedule(&side, "j1", "1700000002.623", "{}").await?;
    schedule(&side, "j2", "1700000009", "{}").await?;
    let due = side.verbs.due().await?;
    check!(!due.is_empty());
    same!(due.next, Some(Duration::from_millis(2_500)));
    Ok(())
}

/// The status stays, as with Bananas' scheduler, and the record does not expire.
async fn the_record_loses_its_time_only(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let text = "{\"status\": \"scheduled\", \"n\": 12345678901234567890, \"scheduled_for\": \"x\"}";
    schedule(&side, "j1", "1", text).await?;
    side.promote().await?;
    let expected = text.replace(", \"scheduled_for\": \"x\"", "");
    same!(side.record("j1").await?, Some(expected));
    same!(side.ttl(&side.keys().job("j1")).await?, -1);
    Ok(())
}

/// Two Meshwork workers move it at the same time.
async fn two_move_it_once(world: &World) -> Outcome {
    let side = Side::of(world)?;
    schedule(&side, "j1", "1", "{\"scheduled_for\":\"x\"}").await?;
    schedule(&side, "j2", "2", "{}").await?;
    let (one, two) = (side.verbs.due().await?, side.verbs.due().await?);
    same!(side.verbs.promote(&one, ClientVariant::Go).await?.moved, 2);
    same!(side.verbs.promote(&two, ClientVariant::Go).await?.moved, 0);
    same!(side.list(&side.plain()).await?, ["j1", "j2"]);
    Ok(())
}

/// Another scheduler, or a failure with a new time, came between the two steps.
async fn what_has_changed_meanwhile_is_left(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for id in ["moved", "again", "written"] {
        schedule(&side, id, "1", "{}").await?;
    }
    let due = side.verbs.due().await?;
    let scheduled = side.keys().scheduled();
    world.raw::<()>(&["ZREM", &scheduled, "moved"]).await?;
    schedule(&side, "again", "1800000000", "{}").await?;
    schedule(&side, "written", "1", "{\"priority\":\"low\"}").await?;
    let before = world.all().await?;
    same!(side.verbs.promote(&due, ClientVariant::Go).await?.moved, 0);
    world.unchanged(&before).await?;
    same!(side.promote().await?.moved, 1);
    let low = side.keys().plain(Priority::Low);
    same!(side.list(&low).await?, ["written"]);
    Ok(())
}

/// Bananas' schedulers read such an entry for ever.
async fn an_entry_without_a_record_is_dead_with_the_reason(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let scheduled = side.keys().scheduled();
    world
        .raw::<()>(&["ZADD", &scheduled, "1", "ghost-1"])
        .await?;
    schedule(&side, "bad", "2", "{not json").await?;
    let outcome = side.promote().await?;
    same!((outcome.moved, outcome.buried), (2, 2));
    same!(side.list(&side.keys().dead()).await?, ["ghost-1", "bad"]);
    check!(side.says("ghost-1", "Job data not found").await?);
    check!(side.says("bad", "corrupted_data").await?);
    same!(side.ttl(&side.keys().job("bad")).await?, 604_800);
    let error = side.result("ghost-1", "error").await?;
    same!(error.as_deref(), Some("there is no record"));
    same!(world.raw::<u8>(&["ZCARD", &scheduled]).await?, 0);
    Ok(())
}

/// Python writes times without a zone, and Go never runs such a job.
async fn a_naive_time_holds_up_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let text = "{\"created_at\": \"x\", \"scheduled_for\": \"2026-11-20T12:33:54.004348\"}";
    schedule(&side, "j1", "1", text).await?;
    same!(side.promote().await?.moved, 1);
    same!(
        side.record("j1").await?.as_deref(),
        Some("{\"created_at\": \"x\"}")
    );
    Ok(())
}

/// The job stays where it is, and the worker does not retry at once.
async fn a_list_of_another_kind_holds_up_no_other(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let gpu = side.keys().routed(&"gpu".parse()?, Default::default());
    side.set(&gpu, "x").await?;
    schedule(
        &side,
        "j1",
        "1",
        "{\"routing_key\":\"gpu\",\"scheduled_for\":\"x\"}",
    )
    .await?;
    let record = side.record("j1").await?;
    let outcome = side.promote().await?;
    same!(outcome.moved, 0);
    same!(side.record("j1").await?, record);
    schedule(&side, "j2", "2", "{}").await?;
    same!(side.promote().await?.moved, 1);
    Ok(())
}
