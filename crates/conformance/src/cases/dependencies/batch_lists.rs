//! Lists of batches, their retention, and the ownership of their jobs.

use std::time::Duration;

use meshwork_broker::{BatchState, Retention};
use meshwork_model::batch::NewBatch;
use meshwork_model::outcome::FailureKind;

use crate::cases::dependencies::batch_ends::finish_all;
use crate::cases::dependencies::batches::{
    add, batch_id, counts, open, open_whole, run, seal, status,
};
use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, same};

cases![
    batches_are_listed,
    batches_are_forgotten_by_age,
    batches_are_forgotten_by_number,
    batches_count_nobody_who_is_not_among_them,
    batches_fail_if_the_entry_of_a_job_was_lost,
    batches_leave_callbacks_of_others_alone,
];

/// Open batches come first.
async fn batches_are_listed(world: &World) -> Outcome {
    for id in ["b1", "b2", "b3"] {
        let mut batch = NewBatch::new(batch_id(id)?);
        batch.name = format!("name of {id}");
        batch.open_for = Duration::from_secs(60);
        world.broker.open_batch(&batch).await?;
    }
    world.pass(10);
    seal(world, "b1").await?;
    world.pass(10);
    seal(world, "b3").await?;
    let listed = async |from, limit| -> Got<(Vec<String>, bool)> {
        let (batches, more) = world.broker.batches(from, limit).await?;
        let ids = batches.into_iter().map(|batch| batch.id.to_string());
        Ok((ids.collect(), more))
    };
    for (from, limit, ids, more) in [
        (0, 10, &["b2", "b3", "b1"][..], false),
        (0, 2, &["b2", "b3"], true),
        (0, 0, &[], false),
        (1, 1, &["b3"], true),
        (2, 2, &["b1"], false),
        (3, 2, &[], false),
        (u32::MAX as usize, 1000, &[], false),
    ] {
        let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
        same!(listed(from, limit).await?, (ids, more));
    }
    same!(status(world, "b2").await?.name, "name of b2");
    let open_until = START + 60_000;
    same!(status(world, "b2").await?.open_until_ms, Some(open_until));
    Ok(())
}

/// Batches have the same retention as jobs.
async fn batches_are_forgotten_by_age(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    seal(world, "b").await?;
    let retention = Retention {
        age: Duration::from_secs(100),
        count: 10,
    };
    world.pass(99_999);
    world.broker.sweep_batches(retention).await?;
    same!(status(world, "b").await?.state, BatchState::Succeeded);
    world.pass(1);
    same!(world.broker.sweep_batches(retention).await?, (1, false));
    same!(world.broker.batch_status(&batch_id("b")?).await?, None);
    same!(
        world
            .raw::<u8>(&["EXISTS", &world.keys().batches_ended()])
            .await?,
        0
    );
    Ok(())
}

/// The oldest batches go first; open batches stay.
async fn batches_are_forgotten_by_number(world: &World) -> Outcome {
    for id in ["b1", "b2", "b3", "open"] {
        world.pass(1);
        open(world, id, &[]).await?;
        if id != "open" {
            seal(world, id).await?;
        }
    }
    add(world, "open", &["j"]).await?;
    world
        .fail(&world.take_one().await?, FailureKind::Permanent)
        .await?;
    let retention = Retention {
        age: Duration::from_secs(100),
        count: 1,
    };
    world.broker.sweep_batches(retention).await?;
    let (left, _) = world.broker.batches(0, 10).await?;
    let left: Vec<_> = left.iter().map(|batch| batch.id.as_str()).collect();
    same!(left, ["open", "b3"]);
    Ok(())
}

/// The job may have been counted before.
async fn batches_count_nobody_who_is_not_among_them(world: &World) -> Outcome {
    open(world, "b", &[]).await?;
    add(world, "b", &["j1", "j2"]).await?;
    let members = world.keys().members(&batch_id("b")?);
    world.raw::<()>(&["SREM", &members, "j1"]).await?;
    finish_all(world, 2).await?;
    let (total, succeeded, failed, _) = counts(world, "b").await?;
    same!((total, succeeded, failed), (2, 1, 0));
    Ok(())
}

/// The job was not counted, however it has ended.
async fn batches_fail_if_the_entry_of_a_job_was_lost(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j1", "j2"]).await?;
    let members = world.keys().members(&batch_id("b")?);
    world.raw::<()>(&["SREM", &members, "j1"]).await?;
    seal(world, "b").await?;
    run(world, "j1", false).await?;
    run(world, "j2", true).await?;
    same!(counts(world, "b").await?, (2, 1, 0, BatchState::Failed));
    same!(world.waiting().await?, ["failure", "done"]);
    same!(
        world.read("success").await?.error.as_deref(),
        Some("batch b did not succeed")
    );
    Ok(())
}

/// A job with the same id may belong to another client by now.
async fn batches_leave_callbacks_of_others_alone(world: &World) -> Outcome {
    open_whole(world, "b").await?;
    add(world, "b", &["j"]).await?;
    let done = world.key("done");
    world
        .raw::<()>(&["HSET", &done, "mw_callback", "done other"])
        .await?;
    seal(world, "b").await?;
    run(world, "j", true).await?;
    same!(world.waiting().await?, ["success"]);
    Ok(())
}
