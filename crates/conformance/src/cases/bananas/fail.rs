//! fail: another run after a pause, or a dead letter.

use std::time::Duration;

use meshwork_broker::bananas::Failed;

use super::{Outcome, Side, TOOK, World, cases, check, same};

cases![
    runs_again_after_a_pause,
    the_last_run_makes_a_dead_letter,
    what_no_run_can_help_is_dead_at_once,
    a_record_without_a_count_has_the_workers,
    those_who_wait_are_told,
    what_is_no_job_is_dead_with_the_reason,
    a_key_of_another_kind_stays,
    ends_the_lease,
    refuses_another_token,
    changes_the_record_as_it_is_now,
    the_record_of_the_next_job_without_an_id_stays,
    no_set_to_wait_in_changes_nothing,
    dead_letters_of_another_kind_hold_up_nothing,
];

/// The pause is 2 s after the first failure, and 4 s after the second.
async fn runs_again_after_a_pause(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut claimed = side.started("j1").await?;
    for (failures, seconds, due) in [(1, 2, "1700000002.123"), (2, 4, "1700000004.123")] {
        let outcome = side.verbs.fail(&claimed, "boom", true, 9, TOOK).await?;
        same!(outcome, Failed::Again(Duration::from_secs(seconds)));
        let scheduled = side.keys().scheduled();
        let score: f64 = world.raw(&["ZSCORE", &scheduled, "j1"]).await?;
        same!(format!("{score:.3}"), due);
        check!(side.says("j1", &format!("\"attempts\":{failures}")).await?);
        check!(side.says("j1", "\"status\":\"pending\"").await?);
        check!(side.says("j1", "\"error\":\"boom\"").await?);
        let at = format!("\"scheduled_for\":\"2023-11-14T22:13:2{seconds}.123000Z\"");
        check!(side.says("j1", &at).await?);
        same!(side.ttl(&side.keys().job("j1")).await?, -1);
        check!(side.list(&side.keys().dead()).await?.is_empty());
        side.push(&side.plain(), "j1").await?;
        claimed = side.take_one().await?;
    }
    Ok(())
}

/// `max_retries` 3 means three runs.
async fn the_last_run_makes_a_dead_letter(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put_text("j1", "{\"attempts\":2,\"max_retries\":3}")
        .await?;
    side.push(&side.keys().dead(), "j0").await?;
    let claimed = side.take_one().await?;
    let outcome = side.verbs.fail(&claimed, "boom", true, 9, TOOK).await?;
    same!(outcome, Failed::Dead);
    same!(side.list(&side.keys().dead()).await?, ["j0", "j1"]);
    check!(side.says("j1", "\"attempts\":3").await?);
    check!(side.says("j1", "\"status\":\"failed\"").await?);
    same!(side.ttl(&side.keys().job("j1")).await?, 604_800);
    let there: u8 = world.raw(&["EXISTS", &side.keys().scheduled()]).await?;
    same!(there, 0);
    Ok(())
}

/// The number of runs left does not matter.
async fn what_no_run_can_help_is_dead_at_once(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    let outcome = side.verbs.fail(&claimed, "boom", false, 9, TOOK).await?;
    same!(outcome, Failed::Dead);
    same!(side.list(&side.keys().dead()).await?, ["j1"]);
    Ok(())
}

/// The worker's default allows two runs.
async fn a_record_without_a_count_has_the_workers(world: &World) -> Outcome {
    let side = Side::of(world)?;
    for (attempts, again) in [(0, true), (1, false)] {
        let text = format!("{{\"attempts\":{attempts}}}");
        side.put_text("j1", &text).await?;
        let claimed = side.take_one().await?;
        let outcome = side.verbs.fail(&claimed, "boom", true, 2, TOOK).await?;
        same!(matches!(outcome, Failed::Again(_)), again);
    }
    Ok(())
}

/// Waiting clients receive a message after each failure, as from Bananas' workers.
async fn those_who_wait_are_told(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    let stale = side.keys().result("j1");
    world.raw::<()>(&["HSET", &stale, "result", "1"]).await?;
    side.verbs.fail(&claimed, "boom", true, 9, TOOK).await?;
    for (field, value) in [
        ("status", Some("failed")),
        ("completed_at", Some("2023-11-14T22:13:20Z")),
        ("duration_ms", Some("17")),
        ("error", Some("boom")),
        ("result", None),
    ] {
        same!(side.result("j1", field).await?.as_deref(), value);
    }
    same!(side.ttl(&stale).await?, 86_400);
    Ok(())
}

/// Bananas' tools can show the record.
async fn what_is_no_job_is_dead_with_the_reason(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.plain(), "missing").await?;
    side.put_text("bad", "{not json").await?;
    for claimed in side.take(2).await? {
        let fault = claimed.found.fault().unwrap_or_default();
        let outcome = side.verbs.fail(&claimed, &fault, true, 9, TOOK).await?;
        same!(outcome, Failed::Dead);
        same!(side.ttl(&side.keys().job(&claimed.id())).await?, 604_800);
    }
    let missing = "{\"error\":\"Job data not found (corrupted reference)\",\"id\":\"missing\"}";
    same!(side.record("missing").await?.as_deref(), Some(missing));
    check!(
        side.says("bad", "{\"corrupted_data\":\"{not json\",\"error\":")
            .await?
    );
    same!(side.list(&side.keys().dead()).await?, ["missing", "bad"]);
    same!(
        side.result("bad", "status").await?.as_deref(),
        Some("failed")
    );
    side.idle().await
}

/// The key belongs to another program; only the id is a dead letter.
async fn a_key_of_another_kind_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.push(&side.keys().job("odd"), "x").await?;
    side.push(&side.plain(), "odd").await?;
    let claimed = side.take_one().await?;
    same!(
        side.verbs.fail(&claimed, "odd", true, 9, TOOK).await?,
        Failed::Dead
    );
    same!(side.list(&side.keys().job("odd")).await?, ["x"]);
    same!(side.list(&side.keys().dead()).await?, ["odd"]);
    Ok(())
}

/// No key of Meshwork is left of the job.
async fn ends_the_lease(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let lost = side.keys().lease().replace("lease", "lost:j1");
    side.set(&lost, "2").await?;
    for again in [true, false] {
        let claimed = side.started(if again { "j2" } else { "j1" }).await?;
        side.verbs.fail(&claimed, "boom", again, 9, TOOK).await?;
        side.idle().await?;
    }
    let there: u8 = world.raw(&["EXISTS", &lost]).await?;
    same!(there, 0);
    Ok(())
}

/// A worker that was taken for dead changes nothing.
async fn refuses_another_token(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut claimed = side.started("j1").await?;
    claimed.token = "t9".to_owned();
    let before = world.all().await?;
    let outcome = side.verbs.fail(&claimed, "boom", true, 9, TOOK).await?;
    same!(outcome, Failed::Stale);
    world.unchanged(&before).await
}

/// The record was replaced while the job ran.
async fn changes_the_record_as_it_is_now(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    let text = "{\"z\":1,\"attempts\":6,\"max_retries\":9}";
    side.set(&side.keys().job("j1"), text).await?;
    side.verbs.fail(&claimed, "boom", true, 9, TOOK).await?;
    check!(side.says("j1", "\"z\":1").await?);
    check!(side.says("j1", "\"attempts\":7").await?);
    Ok(())
}

/// Bananas' cron writes all its records under the empty id. So there may be no record left for another run.
async fn the_record_of_the_next_job_without_an_id_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put_text("", "{\"name\":\"one\"}").await?;
    let claimed = side.take_one().await?;
    side.put_text("", "{\"name\":\"next\"}").await?;
    let outcome = side.verbs.fail(&claimed, "boom", true, 9, TOOK).await?;
    same!(outcome, Failed::Dead);
    same!(
        side.record("").await?.as_deref(),
        Some("{\"name\":\"next\"}")
    );
    same!(side.ttl(&side.keys().job("")).await?, -1);
    same!(side.list(&side.keys().dead()).await?, [""]);
    same!(side.result("", "error").await?.as_deref(), Some("boom"));
    let next = side.take_one().await?;
    let outcome = side.verbs.fail(&next, "boom", true, 9, TOOK).await?;
    check!(matches!(outcome, Failed::Again(_)));
    side.idle().await
}

/// The job returns when its lease expires.
async fn no_set_to_wait_in_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.set(&side.keys().scheduled(), "x").await?;
    let claimed = side.started("j1").await?;
    let before = world.all().await?;
    check!(
        side.verbs
            .fail(&claimed, "boom", true, 9, TOOK)
            .await
            .is_err()
    );
    world.unchanged(&before).await
}

/// The record says that the job is a dead letter.
async fn dead_letters_of_another_kind_hold_up_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.set(&side.keys().dead(), "x").await?;
    let claimed = side.started("j1").await?;
    let outcome = side.verbs.fail(&claimed, "boom", false, 9, TOOK).await?;
    same!(outcome, Failed::Dead);
    check!(side.says("j1", "\"status\":\"failed\"").await?);
    side.idle().await
}
