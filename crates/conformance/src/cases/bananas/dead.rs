//! replay and forget: dead letters run again, or are deleted.

use meshwork_broker::Error;
use meshwork_broker::bananas::{Failed, Found, RetriedDead};
use meshwork_model::bananas::ClientVariant;
use meshwork_model::route::Priority;

use super::{Outcome, Side, TOOK, World, cases, check, same};
use crate::cases::heavy_loads::heavy::{seed, short};

cases![
    runs_again_with_all_its_runs,
    goes_to_the_end_of_its_routes_list,
    what_is_no_dead_letter_stays,
    what_was_queued_again_is_left_alone,
    what_says_not_what_to_run_stays,
    a_key_that_is_no_list_changes_nothing,
    all_of_it_is_forgotten,
    a_job_that_runs_again_keeps_its_record,
    a_key_of_another_kind_stays,
    the_record_is_taken_as_it_is_now,
    calls_stay_short,
];

/// Creates a dead letter without runs left, and its result.
async fn dead(side: &Side<'_>, id: &str) -> Outcome {
    let record = format!(
        "{{\"id\":\"{id}\",\"name\":\"count\",\"payload\":{{}},\"big\":12345678901234567890,\"status\":\"pending\",\
         \"attempts\":2,\"max_retries\":3,\"scheduled_for\":\"2023-11-14T22:13:20Z\",\"routing_key\":\"gpu\"}}"
    );
    side.put_text(id, &record).await?;
    let claimed = side.take_one().await?;
    let outcome = side.verbs.fail(&claimed, "boom", true, 9, TOOK).await?;
    same!(outcome, Failed::Dead);
    Ok(())
}

async fn replay(side: &Side<'_>, id: &str, peer: ClientVariant) -> Result<RetriedDead, Error> {
    let found = side.verbs.inspect(id).await?;
    side.verbs.retry_dead(id, &found, peer).await
}

async fn forget(side: &Side<'_>, id: &str) -> Result<bool, Error> {
    let found = side.verbs.inspect(id).await?;
    side.verbs.delete_dead(id, &found).await
}

/// The record keeps unknown fields, the failure is removed, and the record does not expire.
async fn runs_again_with_all_its_runs(world: &World) -> Outcome {
    let side = Side::of(world)?;
    dead(&side, "j1").await?;
    world.pass(1_000);
    same!(
        replay(&side, "j1", ClientVariant::Go).await?,
        RetriedDead::Queued
    );
    let record = "{\"id\":\"j1\",\"name\":\"count\",\"payload\":{},\"big\":12345678901234567890,\"status\":\"pending\",\
                  \"attempts\":0,\"max_retries\":3,\"routing_key\":\"gpu\",\"updated_at\":\"2023-11-14T22:13:21.123000Z\"}";
    let is = side.record("j1").await?.unwrap_or_default();
    let fields = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    same!(fields(&is), fields(record));
    check!(is.contains("\"big\":12345678901234567890"));
    same!(side.ttl(&side.keys().job("j1")).await?, -1);
    check!(side.list(&side.keys().dead()).await?.is_empty());
    same!(side.result("j1", "status").await?, None);
    let list = side.keys().routed(&"gpu".parse()?, Priority::Normal);
    let taken = side.claim(&[list], 1).await?;
    same!(taken.jobs.len(), 1);
    let outcome = side
        .verbs
        .fail(&taken.jobs[0], "boom", true, 9, TOOK)
        .await?;
    check!(matches!(outcome, Failed::Again(_)));
    Ok(())
}

/// The id goes where a client of that variant pushes; other entries with the same id are removed too.
async fn goes_to_the_end_of_its_routes_list(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for peer in ClientVariant::ALL {
        dead(&side, "j1").await?;
        side.push(&side.keys().dead(), "j2").await?;
        side.push(&side.keys().dead(), "j1").await?;
        let list = peer.list(side.keys(), &"gpu".parse()?, Priority::Normal);
        side.push(&list, "j0").await?;
        same!(replay(&side, "j1", peer).await?, RetriedDead::Queued);
        same!(side.list(&list).await?, ["j0", "j1"]);
        same!(side.list(&side.keys().dead()).await?, ["j2"]);
        world
            .raw::<()>(&["DEL", &list, &side.keys().dead()])
            .await?;
    }
    Ok(())
}

/// The call is repeated, or the job never failed.
async fn what_is_no_dead_letter_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    dead(&side, "j1").await?;
    replay(&side, "j1", ClientVariant::Go).await?;
    // The record says that the job failed, but no list of dead letters has it.
    side.set(
        &side.keys().job("j2"),
        "{\"name\":\"count\",\"status\":\"failed\"}",
    )
    .await?;
    let before = world.all().await?;
    for id in ["j1", "j2", "nobody"] {
        same!(
            replay(&side, id, ClientVariant::Go).await?,
            RetriedDead::Missing
        );
        check!(!forget(&side, id).await?);
    }
    world.unchanged(&before).await
}

/// An administrator pushed it by hand, and it ended or runs.
async fn what_was_queued_again_is_left_alone(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for status in ["pending", "completed", "scheduled", "processing"] {
        let record = format!("{{\"name\":\"count\",\"status\":\"{status}\"}}");
        side.set(&side.keys().job("j1"), &record).await?;
        side.push(&side.keys().dead(), "j1").await?;
        let before = world.all().await?;
        same!(
            replay(&side, "j1", ClientVariant::Go).await?,
            RetriedDead::Unfinished
        );
        world.unchanged(&before).await?;
    }
    Ok(())
}

/// The record is missing or invalid.
async fn what_says_not_what_to_run_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.plain(), "missing").await?;
    side.put_text("bad", "{not json").await?;
    for claimed in side.take(2).await? {
        side.verbs.fail(&claimed, "no job", true, 9, TOOK).await?;
    }
    side.push(&side.keys().dead(), "gone").await?;
    let before = world.all().await?;
    for id in ["missing", "bad", "gone"] {
        same!(
            replay(&side, id, ClientVariant::Go).await?,
            RetriedDead::NoRecord
        );
    }
    world.unchanged(&before).await
}

async fn a_key_that_is_no_list_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    dead(&side, "j1").await?;
    let list = side.keys().routed(&"gpu".parse()?, Priority::Normal);
    side.set(&list, "x").await?;
    let before = world.all().await?;
    check!(replay(&side, "j1", ClientVariant::Go).await.is_err());
    world.unchanged(&before).await
}

/// Entries without a job are deleted too.
async fn all_of_it_is_forgotten(world: &World) -> Outcome {
    let side = Side::of(world)?;
    dead(&side, "j1").await?;
    side.push(&side.keys().dead(), "j1").await?;
    side.put_text("bad", "{not json").await?;
    side.verbs
        .fail(&side.take_one().await?, "no job", true, 9, TOOK)
        .await?;
    for id in ["j1", "bad"] {
        check!(forget(&side, id).await?);
        same!(side.record(id).await?, None);
        same!(side.result(id, "status").await?, None);
    }
    check!(side.list(&side.keys().dead()).await?.is_empty());
    Ok(())
}

/// Only the entry in the list of dead letters is removed.
async fn a_job_that_runs_again_keeps_its_record(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.push(&side.keys().dead(), "j1").await?;
    check!(forget(&side, "j1").await?);
    check!(side.list(&side.keys().dead()).await?.is_empty());
    check!(side.says("j1", "\"name\":\"count\"").await?);
    side.finish(&claimed, Some("1")).await?;
    side.push(&side.keys().dead(), "j1").await?;
    check!(forget(&side, "j1").await?);
    same!(
        side.result("j1", "status").await?.as_deref(),
        Some("completed")
    );
    Ok(())
}

/// A key of another type under the job's name belongs to another program.
async fn a_key_of_another_kind_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.keys().job("j1"), "x").await?;
    side.push(&side.keys().dead(), "j1").await?;
    same!(
        replay(&side, "j1", ClientVariant::Go).await?,
        RetriedDead::NoRecord
    );
    check!(forget(&side, "j1").await?);
    same!(side.list(&side.keys().job("j1")).await?, ["x"]);
    Ok(())
}

/// The record has changed since it was read.
async fn the_record_is_taken_as_it_is_now(world: &World) -> Outcome {
    let side = Side::of(world)?;
    dead(&side, "j1").await?;
    for found in [Found::Missing, side.verbs.inspect("j1").await?] {
        let now = "{\"name\":\"count\",\"status\":\"failed\",\"z\":1}";
        side.set(&side.keys().job("j1"), now).await?;
        let outcome = side
            .verbs
            .retry_dead("j1", &found, ClientVariant::Go)
            .await?;
        let expected = match found {
            // No record was read, so there is nothing to compare.
            Found::Missing => RetriedDead::NoRecord,
            _ => RetriedDead::Queued,
        };
        same!(outcome, expected);
    }
    check!(side.says("j1", "\"z\":1").await?);
    check!(side.says("j1", "\"pending\"").await?);
    // The job runs: the record that was read says that it had failed.
    side.push(&side.keys().dead(), "j1").await?;
    check!(side.verbs.delete_dead("j1", &Found::Missing).await?);
    check!(side.says("j1", "\"z\":1").await?);
    Ok(())
}

/// The job is the oldest of 100,000.
async fn calls_stay_short(world: &World) -> Outcome {
    let side = Side::of(world)?;
    dead(&side, "j1").await?;
    let one = |n: usize| vec![format!("other-{n}")];
    seed(world, &["LPUSH", &side.keys().dead()], one).await?;
    same!(
        short(replay(&side, "j1", ClientVariant::Go)).await?,
        RetriedDead::Queued
    );
    check!(short(forget(&side, "other-1")).await?);
    Ok(())
}
