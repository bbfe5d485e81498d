//! delete: removes a job that does not run.

use meshwork_broker::{Completed, Deleted};

use crate::cases::harness::legacy_worker;
use crate::cases::harness::world::LEASE_MS;
use crate::cases::orphans::scan_orphans::sweep;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    forgets_a_job_that_waits,
    forgets_a_job_that_ended,
    leaves_a_job_that_runs,
    forgets_a_job_whose_lease_ended,
    the_old_worker_cannot_bring_it_back,
    a_job_that_is_not_there_is_missing,
    leaves_the_other_jobs,
    its_id_may_be_used_again,
    leaves_what_is_no_job,
    no_old_worker_finds_a_job_of_another_client,
    a_job_of_another_client_leaves_the_lists_of_its_target,
    a_job_of_another_client_leaves_lists_that_a_walk_has_met,
];

/// Neither its record nor its id is left.
async fn forgets_a_job_that_waits(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.read("j1").await?;
    same!(world.broker.delete(&job).await?, Deleted::Deleted);
    world
        .events_since("", &["j1 enqueue by  note osis", "j1 delete by  note"])
        .await
}

/// Neither its reply nor its log is left.
async fn forgets_a_job_that_ended(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world
        .broker
        .log(&claimed, &[("stdout", b"one")], None)
        .await?;
    world.finish(&claimed, "42").await?;
    let job = world.read("j1").await?;
    same!(world.broker.delete(&job).await?, Deleted::Deleted);
    world
        .events_since(
            "",
            &[
                "j1 enqueue by  note osis",
                "j1 claim by w1-a note",
                "j1 finished by w1-a note",
                "j1 delete by  note",
            ],
        )
        .await
}

/// A running job must be cancelled first.
async fn leaves_a_job_that_runs(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    let before = world.all().await?;
    world.pass(LEASE_MS - 1);
    same!(world.broker.delete(&claimed.job).await?, Deleted::Running);
    world.unchanged(&before).await
}

/// A dead worker holds no job.
async fn forgets_a_job_whose_lease_ended(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.pass(LEASE_MS);
    same!(world.broker.delete(&claimed.job).await?, Deleted::Deleted);
    world
        .events_since(
            "",
            &[
                "j1 enqueue by  note osis",
                "j1 claim by w1-a note",
                "j1 delete by  note",
            ],
        )
        .await
}

/// Its reports are refused and create no partial record.
async fn the_old_worker_cannot_bring_it_back(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.broker.cancel(&claimed.job, "stopped", true).await?;
    world.broker.delete(&claimed.job).await?;
    same!(world.finish(&claimed, "42").await?, Completed::Stale);
    world
        .events_since(
            "",
            &[
                "j1 enqueue by  note osis",
                "j1 claim by w1-a note",
                "j1 error by  note",
                "j1 delete by  note",
            ],
        )
        .await
}

/// A second call is no error.
async fn a_job_that_is_not_there_is_missing(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    same!(world.broker.delete(&job).await?, Deleted::Missing);
    world
        .events_since("", &["j1 enqueue by  note osis", "j1 delete by  note"])
        .await
}

/// One of several jobs in a queue is deleted.
async fn leaves_the_other_jobs(world: &World) -> Outcome {
    world.put(&["j1", "j3"]).await?;
    let before = world.all().await?;
    world.put(&["j2"]).await?;
    world.broker.delete(&world.read("j2").await?).await?;
    let events = ["j2 enqueue by  note osis", "j2 delete by  note"];
    world.events_since(&before, &events).await
}

/// The id then names a new job.
async fn its_id_may_be_used_again(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    world.broker.delete(&claimed.job).await?;
    let claimed = world.started("j1").await?;
    same!(claimed.job.attempt, 1);
    check!(claimed.job.output.is_none());
    Ok(())
}

/// A list of an older client may have the name of a job; its entries belong to that client.
async fn leaves_what_is_no_job(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.read("j1").await?;
    world.broker.delete(&job).await?;
    world.raw::<()>(&["LPUSH", &world.key("j1"), "x"]).await?;
    let before = world.all().await?;
    same!(world.broker.delete(&job).await?, Deleted::Missing);
    world.unchanged(&before).await
}

/// An old worker would run a job that does not exist.
async fn no_old_worker_finds_a_job_of_another_client(world: &World) -> Outcome {
    legacy_worker::put_old(world, "j1", &[]).await?;
    let job = world.read("j1").await?;
    same!(world.broker.delete(&job).await?, Deleted::Deleted);
    check!(world.list(&legacy_worker::old(world)).await?.is_empty());
    check!(world.record("j1").await?.is_empty());
    Ok(())
}

/// Its client may have pushed it to any list from which workers of its type take.
async fn a_job_of_another_client_leaves_the_lists_of_its_target(world: &World) -> Outcome {
    let work = world.keys().work_prefix();
    let fields = [
        ("status", "dispatched"),
        ("script", "1"),
        ("script_type", "osis"),
    ];
    for list in [
        "osis",
        "osis:prio:0",
        "osis:group:default",
        "osis:group:default:prio:2",
    ] {
        world.put_foreign("j1", &fields).await?;
        let list = format!("{work}{list}");
        for id in ["other", "j1", "j1"] {
            world.raw::<()>(&["LPUSH", &list, id]).await?;
        }
        let job = world.read("j1").await?;
        same!(world.broker.delete(&job).await?, Deleted::Deleted);
        same!(
            (&list, world.list(&list).await?),
            (&list, vec!["other".to_owned()])
        );
        world.raw::<()>(&["DEL", &list]).await?;
    }
    Ok(())
}

/// This includes lists of a type other than that of the record, or of a record without a type.
async fn a_job_of_another_client_leaves_lists_that_a_walk_has_met(world: &World) -> Outcome {
    let list = format!("{}sal:group:g", world.keys().work_prefix());
    for fields in [&[("script_type", "osis")][..], &[]] {
        let own = [("status", "dispatched"), ("script", "1")];
        world
            .put_foreign("j1", &[&own[..], fields].concat())
            .await?;
        world.raw::<()>(&["DEL", &world.queue()]).await?;
        for id in ["other", "j1"] {
            world.raw::<()>(&["LPUSH", &list, id]).await?;
        }
        world.pass(60_000);
        sweep(world).await?;
        let job = world.read("j1").await?;
        same!(world.broker.delete(&job).await?, Deleted::Deleted);
        same!(world.list(&list).await?, ["other"]);
        world.raw::<()>(&["DEL", &list]).await?;
    }
    Ok(())
}
