//! adopt: jobs of other clients are watched.

use meshwork_broker::{Error, MAX_ITEMS, Suspect};
use meshwork_model::name::JobId;

use crate::cases::harness::legacy_worker::{
    AGE, look_after, looked_at, migrate, old, pop, put_old, set, start, write,
};
use crate::cases::harness::world::{START, ids};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_job_that_its_client_never_pushed_is_run,
    a_job_that_an_old_worker_took_is_run,
    a_job_that_an_old_worker_started_is_run,
    what_stands_on_a_list_is_left,
    a_hash_without_a_status_is_no_job,
    what_is_not_adrift_is_left,
    a_job_of_a_flow_without_a_queue_is_left,
    said_twice_it_counts_once,
    what_the_record_says_stays,
    the_worker_in_either_spelling_names_the_old_list,
    its_client_is_answered_where_it_waits,
    more_than_1000_are_refused,
];

/// Returns a job of type `osis`.
pub(crate) fn osis(id: &str) -> Result<Suspect, Failure> {
    Ok(Suspect {
        id: JobId::foreign(id.to_owned()),
        script_type: Some("osis".parse()?),
        queue: None,
    })
}

pub(crate) async fn adopt(world: &World, ids: &[&str]) -> Result<usize, Failure> {
    let mut jobs = Vec::new();
    for id in ids {
        jobs.push(osis(id)?);
    }
    Ok(world.broker.track_orphans(&jobs).await?)
}

/// The client died between the two commands.
async fn a_job_that_its_client_never_pushed_is_run(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    write(world, "j1", &["status", "dispatched", "script", "1"]).await?;
    same!(adopt(world, &["j1"]).await?, 1);
    same!(looked_at(world, "j1").await?, Some(START + AGE));
    same!(look_after(world, AGE).await?.len(), 0);
    same!(look_after(world, AGE).await?, ["j1"]);
    same!(world.list(&old(world)).await?, ["j1"]);
    same!(ids(&world.take(5).await?), ["j1"]);
    same!(pop(world).await?, None);
    Ok(())
}

/// The worker died before it wrote `started`.
async fn a_job_that_an_old_worker_took_is_run(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "j1", &[]).await?;
    same!(adopt(world, &["j1"]).await?, 1);
    same!(look_after(world, AGE).await?.len(), 0);
    pop(world).await?;
    same!(look_after(world, AGE).await?.len(), 0);
    same!(look_after(world, AGE).await?, ["j1"]);
    same!(ids(&world.take(5).await?), ["j1"]);
    Ok(())
}

/// The job runs when its timeout has passed, not before.
async fn a_job_that_an_old_worker_started_is_run(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "j1", &["timeout", "3"]).await?;
    start(world, "j1").await?;
    same!(adopt(world, &["j1"]).await?, 1);
    for _ in 0..4 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(look_after(world, AGE).await?, ["j1"]);
    same!(world.read("j1").await?.lost, 1);
    Ok(())
}

/// Neither a job on the old list nor one on the queue of its type changes.
async fn what_stands_on_a_list_is_left(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "j1", &[]).await?;
    world
        .put_foreign("j2", &[("status", "dispatched"), ("script", "1")])
        .await?;
    same!(adopt(world, &["j1", "j2"]).await?, 2);
    for _ in 0..5 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(world.list(&old(world)).await?, ["j1"]);
    same!(world.waiting().await?, ["j2"]);
    // The field says on which list its client waits for the reply.
    same!(world.field("j2", "mw_legacy").await?.as_deref(), Some("0"));
    same!(world.field("j1", "mw_legacy").await?, None);
    Ok(())
}

/// The same rule holds for a claim.
async fn a_hash_without_a_status_is_no_job(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    write(world, "j1", &["script", "1"]).await?;
    write(world, "j2", &["script", "1", "status", ""]).await?;
    same!(adopt(world, &["j1", "j2"]).await?, 1);
    look_after(world, AGE).await?;
    same!(look_after(world, AGE).await?, ["j2"]);
    Ok(())
}

/// Jobs that have ended, wait, have a lease or a delay, and hashes without a job, stay.
async fn what_is_not_adrift_is_left(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    for (id, status) in [
        ("finished", "finished"),
        ("error", "error"),
        ("other", "paused"),
    ] {
        write(world, id, &["status", status, "script", "1"]).await?;
    }
    let open = ["status", "dispatched", "script", "1"];
    write(
        world,
        "waits",
        &[&open[..], &["mw_waiting", "\"j\""]].concat(),
    )
    .await?;
    for (id, set) in [
        ("leased", world.keys().lease()),
        ("delayed", world.keys().delayed()),
    ] {
        write(world, id, &open).await?;
        world
            .raw::<()>(&["ZADD", &set, "9999999999999", id])
            .await?;
    }
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    world.raw::<()>(&["SET", &world.key("string"), "x"]).await?;
    let before = world.all().await?;
    let all = [
        "finished", "error", "other", "waits", "leased", "delayed", "list", "string", "gone",
    ];
    same!(adopt(world, &all).await?, 0);
    same!(adopt(world, &[]).await?, 0);
    world.unchanged(&before).await
}

/// An approval may be open for weeks.
async fn a_job_of_a_flow_without_a_queue_is_left(world: &World) -> Outcome {
    let open = [
        "status",
        "started",
        "script_type",
        "approve",
        "mw_reply",
        "1",
        "mw_flow",
        "3",
    ];
    write(world, "j1", &open).await?;
    same!(adopt(world, &["j1"]).await?, 0);
    same!(looked_at(world, "j1").await?, None);
    // A job that a worker may have had is another matter.
    write(world, "j1", &["mw_queue", &world.queue()]).await?;
    same!(adopt(world, &["j1"]).await?, 1);
    Ok(())
}

/// The time of the first check stays.
async fn said_twice_it_counts_once(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "j1", &[]).await?;
    same!(adopt(world, &["j1", "j1"]).await?, 1);
    let before = world.all().await?;
    world.pass(AGE / 2);
    same!(adopt(world, &["j1"]).await?, 0);
    world.unchanged(&before).await
}

/// The type and the canonical queue of a record stay; an old list as its queue is replaced.
async fn what_the_record_says_stays(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let queue = world.queue_of("osis:group:io");
    let pairs = [
        ("j1", queue.clone(), &queue),
        ("j2", old(world), &world.queue()),
    ];
    for (id, was, is) in pairs {
        put_old(world, id, &["mw_queue", &was]).await?;
        same!(adopt(world, &[id]).await?, 1);
        same!(world.field(id, "mw_queue").await?.as_ref(), Some(is));
        same!(
            world.field(id, "script_type").await?.as_deref(),
            Some("OSIS")
        );
    }
    Ok(())
}

/// A job on that list stays there.
async fn the_worker_in_either_spelling_names_the_old_list(world: &World) -> Outcome {
    let pattern = format!("{}{{worker_id}}", world.keys().legacy_work_prefix());
    set(world, "osis", &format!("dual {pattern} {AGE}")).await?;
    for (id, field) in [("j1", "worker_id"), ("j2", "actor_id")] {
        write(
            world,
            id,
            &["status", "dispatched", "script", "1", field, "runner_1"],
        )
        .await?;
        let list = pattern.replace("{worker_id}", "runner_1");
        world.raw::<()>(&["LPUSH", &list, id]).await?;
    }
    same!(adopt(world, &["j1", "j2"]).await?, 2);
    for _ in 0..4 {
        same!(look_after(world, AGE).await?.len(), 0);
    }
    same!(world.waiting().await?.len(), 0);
    Ok(())
}

/// The reply also goes there when the job was pushed again.
async fn its_client_is_answered_where_it_waits(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    put_old(world, "j1", &[]).await?;
    same!(adopt(world, &["j1"]).await?, 1);
    pop(world).await?;
    look_after(world, AGE).await?;
    look_after(world, AGE).await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    let reply = format!("{}j1", world.keys().legacy_reply_prefix());
    same!(world.list(&reply).await?, ["42"]);
    Ok(())
}

/// A refused call writes nothing; a call with a thousand jobs succeeds.
async fn more_than_1000_are_refused(world: &World) -> Outcome {
    migrate(world, "dual").await?;
    let mut jobs = Vec::new();
    for n in 0..=MAX_ITEMS {
        let id = format!("j{n}");
        write(world, &id, &["status", "dispatched", "script", "1"]).await?;
        jobs.push(osis(&id)?);
    }
    check!(matches!(
        world.broker.track_orphans(&jobs).await,
        Err(Error::TooMany { .. })
    ));
    same!(looked_at(world, "j0").await?, None);
    same!(world.broker.track_orphans(&jobs[1..]).await?, MAX_ITEMS);
    Ok(())
}
