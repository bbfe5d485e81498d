//! export_bananas: exports imported jobs to Bananas. Also the end of an imported job, which its script writes to
//! Bananas.

use meshwork_broker::bananas::Exported;
use meshwork_model::bananas::Bucket;
use meshwork_model::job::NewJob;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Route;

use super::over::{Both, RECORD, gpu};
use super::{Outcome, World, cases, check, same};

cases![
    a_waiting_job_is_exported_unchanged,
    a_delayed_job_is_exported_unchanged,
    a_dead_letter_is_exported_unchanged,
    export_keeps_the_order,
    export_leaves_no_key,
    a_failed_run_is_exported_with_its_error,
    a_running_job_is_not_exported,
    a_changed_job_is_not_exported,
    a_prerequisite_is_not_exported,
    a_target_of_the_wrong_type_prevents_the_export,
    a_repeated_call_changes_nothing,
    an_end_is_written_to_bananas,
    an_empty_result_is_not_written,
    only_the_last_failure_is_written_to_bananas,
    a_cancellation_before_the_run_is_written_to_bananas,
    a_deletion_is_written_to_bananas,
    a_deletion_after_the_end_writes_nothing,
    keys_of_the_wrong_type_stay_unchanged,
    pruning_ends_the_record_of_an_import,
];

async fn import_and_export(world: &World, both: &Both<'_>, place: &Bucket) -> Outcome {
    let before = both.bananas_data().await?;
    both.take(place).await?;
    check!(both.bananas_data().await? != before);
    same!(both.export_all().await?, [Exported::Given]);
    same!(both.bananas_data().await?, before);
    same!(both.imported_ids().await?, Vec::<String>::new());
    let there: u8 = world.raw(&["EXISTS", &world.key("j1")]).await?;
    same!(there, 0);
    Ok(())
}

/// The list has the same bytes in the same place.
async fn a_waiting_job_is_exported_unchanged(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    import_and_export(world, &both, &list).await?;
    same!(world.list(&both.queue()).await?, Vec::<String>::new());
    let what: Vec<_> = world
        .events()
        .await?
        .into_iter()
        .map(|[_, what, ..]| what)
        .collect();
    same!(what, ["enqueue", "import", "export"]);
    Ok(())
}

/// The time is the same to the last digit.
async fn a_delayed_job_is_exported_unchanged(world: &World) -> Outcome {
    let both = Both::of(world)?;
    both.later("j1", "1700000020.123456").await?;
    import_and_export(world, &both, &Bucket::Later).await?;
    let left: u8 = world.raw(&["EXISTS", &world.keys().delayed()]).await?;
    same!(left, 0);
    Ok(())
}

/// The record expires.
async fn a_dead_letter_is_exported_unchanged(world: &World) -> Outcome {
    let both = Both::of(world)?;
    both.dead("j1", &RECORD.replace("pending", "failed"))
        .await?;
    let key = both.side.keys().job("j1");
    world.raw::<()>(&["PEXPIRE", &key, "604800000"]).await?;
    import_and_export(world, &both, &Bucket::Dead).await?;
    same!(both.side.ttl(&key).await?, 604_800);
    let left: u8 = world.raw(&["EXISTS", &world.keys().dead()]).await?;
    same!(left, 0);
    Ok(())
}

/// The order is that of the import.
async fn export_keeps_the_order(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j2", "j1", "j3"]).await?;
    both.take_some(&list, 2).await?;
    both.take(&list).await?;
    same!(both.export_all().await?, [Exported::Given; 3]);
    same!(both.ids_in(&list).await?, ["j2", "j1", "j3"]);
    Ok(())
}

/// Only the counters of all jobs stay.
async fn export_leaves_no_key(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    both.export_all().await?;
    let left = world.all().await?;
    let keys: Vec<_> = left.lines().filter(|line| !line.starts_with(' ')).collect();
    let stays = [":q:events", ":q:lists", ":meta:queue:stats:"];
    let counted = |key: &&str| stays.iter().any(|part| key.contains(part));
    check!(keys.iter().all(counted));
    Ok(())
}

/// The job waits for its next run, as after a failure in Bananas.
async fn a_failed_run_is_exported_with_its_error(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(both.export_all().await?, [Exported::Given]);
    let list = Bucket::List(gpu(both.side.keys()));
    same!(both.ids_in(&list).await?, ["j1"]);
    let expected = RECORD
        .replace(
            "22:13:00Z\",\"attempts\":0",
            "22:13:20.123000Z\",\"attempts\":1",
        )
        .replace("s\":3", "s\":3,\"error\":\"boom\"");
    same!(both.side.record("j1").await?, Some(expected));
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, -1);
    Ok(())
}

/// The job is exported after a failure, if it fails.
async fn a_running_job_is_not_exported(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let returns = both.export_items().await?;
    both.claim(&both.queue()).await?;
    let before = both.all().await?;
    same!(both.export(&returns).await?, [Exported::Runs]);
    same!(both.all().await?, before);
    same!(both.export_items().await?.len(), 0);
    check!(world.broker.imported(0).await?[0].runs);
    Ok(())
}

/// The runs, the time or the state of the job have changed.
async fn a_changed_job_is_not_exported(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let returns = both.export_items().await?;
    let changes: [&[&str]; 3] = [
        &["HSET", &world.key("j1"), "mw_attempt", "1"],
        &[
            "HSET",
            &world.key("j1"),
            "mw_attempt",
            "0",
            "status",
            "error",
        ],
        &["ZADD", &world.keys().delayed(), "1800000000000", "j1"],
    ];
    for change in changes {
        world.raw::<i64>(change).await?;
        let before = both.all().await?;
        same!(both.export(&returns).await?, [Exported::Changed]);
        same!(both.all().await?, before);
        world
            .raw::<()>(&["HSET", &world.key("j1"), "status", "dispatched"])
            .await?;
    }
    Ok(())
}

/// The dependent jobs would wait for ever.
async fn a_prerequisite_is_not_exported(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let depends_on = vec!["j1".parse()?];
    let waits = NewJob {
        depends_on,
        ..NewJob::new("j2".parse()?, Route::to("osis".parse()?), "1")
    };
    world.put_jobs(&[waits]).await?;
    let before = both.all().await?;
    same!(both.export_all().await?, [Exported::Awaited]);
    same!(both.all().await?, before);
    Ok(())
}

/// The key is the target list or set, or the record.
async fn a_target_of_the_wrong_type_prevents_the_export(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let key = both.side.keys().job("j1");
    for odd in [gpu(both.side.keys()), key] {
        world.raw::<()>(&["DEL", &odd]).await?;
        world.raw::<()>(&["SADD", &odd, "x"]).await?;
        let before = both.all().await?;
        same!(both.export_all().await?, [Exported::Odd]);
        same!(both.all().await?, before);
        world.raw::<()>(&["DEL", &odd]).await?;
    }
    same!(both.export_all().await?, [Exported::Given]);
    Ok(())
}

/// The call is repeated because its answer was lost.
async fn a_repeated_call_changes_nothing(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let returns = both.export_items().await?;
    both.export(&returns).await?;
    let before = both.all().await?;
    same!(both.export(&returns).await?, [Exported::Gone]);
    world.put(&["j1"]).await?;
    same!(both.export(&returns).await?, [Exported::Gone]);
    same!(both.bananas_data().await?, both.bananas_data().await?);
    check!(before != both.all().await?);
    same!(world.status("j1").await?, "dispatched");
    Ok(())
}

/// The step that ends the job also writes the end as Bananas' own worker does.
async fn an_end_is_written_to_bananas(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.pass(1_500);
    world.finish(&claimed, "[1,2]").await?;
    for (field, value) in [
        ("status", "completed"),
        ("completed_at", "2023-11-14T22:13:21Z"),
        ("duration_ms", "1500"),
        ("result", "[1,2]"),
    ] {
        same!(both.side.result("j1", field).await?.as_deref(), Some(value));
    }
    same!(both.side.ttl(&both.side.keys().result("j1")).await?, 3_600);
    let expected = RECORD
        .replace("pending", "completed")
        .replace("22:13:00Z\",\"attempts", "22:13:21.623000Z\",\"attempts");
    same!(both.side.record("j1").await?, Some(expected));
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, 86_400);
    same!(both.export_all().await?, []);
    Ok(())
}

/// A worker of Bananas without a result writes none either.
async fn an_empty_result_is_not_written(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.finish(&claimed, "").await?;
    same!(both.side.result("j1", "result").await?, None);
    same!(
        both.side.result("j1", "status").await?.as_deref(),
        Some("completed")
    );
    Ok(())
}

/// A waiting client goes on waiting while another run follows. The error may be any text.
async fn only_the_last_failure_is_written_to_bananas(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let record = RECORD.replace("s\":3", "s\":2,\"scheduled_for\":\"x\"");
    let list = both.put_text("j1", &record).await?;
    both.take(&list).await?;
    let before = both.bananas_data().await?;
    world
        .fail(&both.claim(&both.queue()).await?, FailureKind::Script)
        .await?;
    same!(both.bananas_data().await?, before);
    let claimed = both.claim(&both.queue()).await?;
    let failure = meshwork_model::outcome::Failure::new(FailureKind::Script, "a \"b\"\\\n\u{1}ü");
    let none = std::time::Duration::ZERO;
    world
        .broker
        .fail(&claimed, &failure, b"", b"", none)
        .await?;
    let error = both.side.result("j1", "error").await?;
    same!(error.as_deref(), Some("a \"b\"\\\n\u{1}ü"));
    same!(
        both.side.result("j1", "status").await?.as_deref(),
        Some("failed")
    );
    same!(both.side.ttl(&both.side.keys().result("j1")).await?, 86_400);
    let expected = RECORD
        .replace("pending", "failed")
        .replace(
            "22:13:00Z\",\"attempts\":0",
            "22:13:20.123000Z\",\"attempts\":2",
        )
        .replace(
            "s\":3",
            "s\":2,\"error\":\"a \\u0022b\\u0022\\u005c\\u000a\\u0001ü\"",
        );
    same!(both.side.record("j1").await?, Some(expected));
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, 604_800);
    same!(both.ids_in(&Bucket::Dead).await?, Vec::<String>::new());
    same!(both.export_all().await?, [Exported::Given]);
    same!(both.ids_in(&Bucket::Dead).await?, ["j1"]);
    same!(both.side.ttl(&both.side.keys().job("j1")).await?, 604_800);
    Ok(())
}

/// The duration is zero.
async fn a_cancellation_before_the_run_is_written_to_bananas(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let job = world.read("j1").await?;
    world.broker.cancel(&job, "not wanted", false).await?;
    same!(
        both.side.result("j1", "error").await?.as_deref(),
        Some("not wanted")
    );
    same!(
        both.side.result("j1", "duration_ms").await?.as_deref(),
        Some("0")
    );
    check!(both.side.says("j1", "\"attempts\":0").await?);
    same!(both.export_all().await?, []);
    Ok(())
}

/// A waiting client would otherwise receive no message.
async fn a_deletion_is_written_to_bananas(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let list = both.put(&["j1"]).await?;
    both.take(&list).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    same!(
        both.side.result("j1", "error").await?.as_deref(),
        Some("deleted")
    );
    same!(both.imported_ids().await?, Vec::<String>::new());
    Ok(())
}

/// Its result stays unchanged.
async fn a_deletion_after_the_end_writes_nothing(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.finish(&claimed, "1").await?;
    let before = both.bananas_data().await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    same!(both.bananas_data().await?, before);
    Ok(())
}

/// These keys do not block the end of a job.
async fn keys_of_the_wrong_type_stay_unchanged(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    let (record, result) = (both.side.keys().job("j1"), both.side.keys().result("j1"));
    world.raw::<()>(&["DEL", &record]).await?;
    world.raw::<()>(&["SADD", &record, "x"]).await?;
    both.side.set(&result, "x").await?;
    let before = both.bananas_data().await?;
    world.finish(&claimed, "1").await?;
    same!(both.bananas_data().await?, before);
    same!(world.status("j1").await?, "finished");
    // The end is written even if the record was removed.
    let claimed = both.started("j2").await?;
    let record = both.side.keys().job("j2");
    world.raw::<()>(&["DEL", &record]).await?;
    world.finish(&claimed, "1").await?;
    check!(both.side.says("j2", "\"completed\"").await?);
    Ok(())
}

/// No list of Meshwork keeps the job.
async fn pruning_ends_the_record_of_an_import(world: &World) -> Outcome {
    let both = Both::of(world)?;
    let claimed = both.started("j1").await?;
    world.finish(&claimed, "1").await?;
    same!(both.imported_ids().await?, ["j1"]);
    world.pass(1_000);
    let id: JobId = "j1".parse()?;
    let kept = meshwork_broker::Retention {
        age: std::time::Duration::ZERO,
        ..Default::default()
    };
    world.broker.prune(kept).await?;
    check!(world.broker.inspect(&id).await?.is_none());
    same!(both.imported_ids().await?, Vec::<String>::new());
    same!(both.ids_in(&both.plain()).await?, Vec::<String>::new());
    Ok(())
}
