//! finish: writes result, record and message in one step, by the worker with the lease.

use meshwork_broker::bananas::{Claimed, Completed, Completion};

use super::{Outcome, Side, TOOK, World, cases, check, same};

cases![
    writes_record_and_result,
    ends_the_lease,
    a_job_without_a_value_has_no_result_field,
    forgets_the_failure_before,
    keeps_what_we_do_not_know,
    changes_the_record_as_it_is_now,
    a_job_without_a_record_has_a_result,
    refuses_another_token,
    a_repeated_call_changes_nothing,
    a_result_of_another_kind_is_left_alone,
    ends_many_in_one_call,
    one_that_is_lost_spoils_no_other,
    those_that_changed_are_told_again,
    the_record_of_the_next_job_without_an_id_stays,
    so_many_and_no_more,
];

/// The value is written as by Bananas' own worker.
async fn writes_record_and_result(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    world.pass(1_000);
    let outcome = side.finish(&claimed, Some("[1,2]")).await?;
    same!(outcome, Completed::Finished);
    check!(side.says("j1", "\"status\":\"completed\"").await?);
    check!(
        side.says("j1", "\"created_at\":\"2023-11-14T22:13:20.123000Z\"")
            .await?
    );
    check!(
        side.says("j1", "\"updated_at\":\"2023-11-14T22:13:21.123000Z\"")
            .await?
    );
    check!(side.says("j1", "\"attempts\":0").await?);
    same!(side.ttl(&side.keys().job("j1")).await?, 86_400);
    for (field, value) in [
        ("status", "completed"),
        ("completed_at", "2023-11-14T22:13:21Z"),
        ("duration_ms", "17"),
        ("result", "[1,2]"),
    ] {
        same!(side.result("j1", field).await?.as_deref(), Some(value));
    }
    same!(side.ttl(&side.keys().result("j1")).await?, 3_600);
    Ok(())
}

/// No key of Meshwork is left of the job; keys of others stay.
async fn ends_the_lease(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let processing = side.keys().processing();
    side.push(&processing, "j1").await?;
    let claimed = side.started("j1").await?;
    let lost = world.bananas()?.keys().lease().replace("lease", "lost:j1");
    side.set(&lost, "2").await?;
    side.finish(&claimed, None).await?;
    same!(side.list(&processing).await?, ["j1"]);
    world.raw::<()>(&["DEL", &processing]).await?;
    let there: u8 = world.raw(&["EXISTS", &lost]).await?;
    same!(there, 0);
    side.idle().await
}

/// Bananas' worker stores none either.
async fn a_job_without_a_value_has_no_result_field(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.finish(&claimed, None).await?;
    same!(side.result("j1", "result").await?, None);
    same!(
        side.result("j1", "status").await?.as_deref(),
        Some("completed")
    );
    Ok(())
}

/// An earlier failed run has left its error.
async fn forgets_the_failure_before(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.verbs.fail(&claimed, "boom", true, 3, TOOK).await?;
    side.push(&side.plain(), "j1").await?;
    let claimed = side.take_one().await?;
    side.finish(&claimed, Some("1")).await?;
    same!(side.result("j1", "error").await?, None);
    Ok(())
}

/// Unknown fields, numbers and blanks stay.
async fn keeps_what_we_do_not_know(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let text = "{ \"x\": 12345678901234567890, \"status\": \"pending\", \"updated_at\": \"u\", \"y\": {} }";
    side.put_text("j1", text).await?;
    let claimed = side.take_one().await?;
    side.finish(&claimed, None).await?;
    let expected = text
        .replace("pending", "completed")
        .replace("\"u\"", "\"2023-11-14T22:13:20.123000Z\"");
    same!(side.record("j1").await?, Some(expected));
    Ok(())
}

/// The record was replaced while the job ran.
async fn changes_the_record_as_it_is_now(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.set(&side.keys().job("j1"), "{\"z\":1}").await?;
    same!(side.finish(&claimed, None).await?, Completed::Finished);
    check!(side.says("j1", "\"z\":1").await?);
    check!(side.says("j1", "\"status\":\"completed\"").await?);
    Ok(())
}

/// The record was deleted, and is not created again.
async fn a_job_without_a_record_has_a_result(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    world.raw::<()>(&["DEL", &side.keys().job("j1")]).await?;
    same!(side.finish(&claimed, None).await?, Completed::Finished);
    same!(side.record("j1").await?, None);
    same!(
        side.result("j1", "status").await?.as_deref(),
        Some("completed")
    );
    side.idle().await
}

/// A worker that was taken for dead changes nothing.
async fn refuses_another_token(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let mut claimed = side.started("j1").await?;
    claimed.token = "t9".to_owned();
    let before = world.all().await?;
    same!(side.finish(&claimed, None).await?, Completed::Stale);
    world.unchanged(&before).await
}

/// A repeated report changes nothing, if its first answer was lost.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    side.finish(&claimed, None).await?;
    let before = world.all().await?;
    same!(side.finish(&claimed, Some("2")).await?, Completed::Stale);
    world.unchanged(&before).await
}

/// A key of another type does not block the end of a job, and does not expire.
async fn a_result_of_another_kind_is_left_alone(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    let key = side.keys().result("j1");
    side.set(&key, "x").await?;
    same!(side.finish(&claimed, Some("1")).await?, Completed::Finished);
    same!(world.raw::<String>(&["GET", &key]).await?, "x");
    same!(side.ttl(&key).await?, -1);
    side.idle().await
}

/// Each job has its own result.
async fn ends_many_in_one_call(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1", "j2", "j3"]).await?;
    let taken = side.take(9).await?;
    let results = [Some("1"), None, Some("[3]")];
    let outcome = side.verbs.complete(&ended(&taken, &results)).await?;
    same!(outcome, [Completed::Finished; 3]);
    for (job, result) in taken.iter().zip(results) {
        same!(side.result(&job.id(), "result").await?.as_deref(), result);
        check!(side.says(&job.id(), "\"status\":\"completed\"").await?);
        check!(
            side.says(&job.id(), &format!("\"id\":\"{}\"", job.id()))
                .await?
        );
    }
    side.idle().await
}

/// The position of the lost job does not matter.
async fn one_that_is_lost_spoils_no_other(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1", "j2", "j3"]).await?;
    let mut taken = side.take(9).await?;
    taken[1].token = "t9".to_owned();
    let outcome = side.verbs.complete(&ended(&taken, &[Some("1"); 3])).await?;
    same!(
        outcome,
        [Completed::Finished, Completed::Stale, Completed::Finished]
    );
    same!(side.result("j2", "status").await?, None);
    same!(side.list(&side.keys().processing()).await?, ["j2"]);
    Ok(())
}

/// Changed records are sent again as they are now; the other jobs are not repeated.
async fn those_that_changed_are_told_again(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put(&["j1", "j2", "j3"]).await?;
    let taken = side.take(9).await?;
    for id in ["j1", "j3"] {
        side.set(&side.keys().job(id), "{\"name\":\"other\"}")
            .await?;
    }
    let outcome = side.verbs.complete(&ended(&taken, &[Some("1"); 3])).await?;
    same!(outcome, [Completed::Finished; 3]);
    for id in ["j1", "j3"] {
        check!(side.says(id, "\"name\":\"other\"").await?);
        check!(side.says(id, "\"status\":\"completed\"").await?);
    }
    check!(side.says("j2", "\"name\":\"count\"").await?);
    Ok(())
}

/// Bananas' cron writes all its records under the empty id: while a job runs, the next one replaces its record.
async fn the_record_of_the_next_job_without_an_id_stays(world: &World) -> Outcome {
    let side = Side::of(world)?;
    side.put_text("", "{\"name\":\"one\"}").await?;
    let claimed = side.take_one().await?;
    side.put_text("", "{\"name\":\"next\"}").await?;
    same!(side.finish(&claimed, Some("1")).await?, Completed::Finished);
    same!(
        side.record("").await?.as_deref(),
        Some("{\"name\":\"next\"}")
    );
    same!(side.result("", "result").await?.as_deref(), Some("1"));
    let next = side.take_one().await?;
    side.finish(&next, Some("2")).await?;
    check!(side.says("", "\"status\":\"completed\"").await?);
    side.idle().await
}

/// A call with more jobs, or with none, changes nothing.
async fn so_many_and_no_more(world: &World) -> Outcome {
    let side = Side::of(world)?;
    let claimed = side.started("j1").await?;
    let before = world.all().await?;
    let (taken, results) = (vec![claimed; 1001], [None; 1001]);
    check!(side.verbs.complete(&ended(&taken, &results)).await.is_err());
    check!(side.verbs.complete(&[]).await?.is_empty());
    world.unchanged(&before).await
}

fn ended<'a>(taken: &'a [Claimed], results: &[Option<&'a str>]) -> Vec<Completion<'a>> {
    let both = taken.iter().zip(results);
    both.map(|(claimed, result)| Completion {
        claimed,
        result: *result,
        took: TOOK,
    })
    .collect()
}
