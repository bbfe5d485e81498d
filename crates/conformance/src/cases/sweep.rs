//! sweep: jobs of other clients that no script of ours knows of are found, while their type migrates.

use std::time::Duration;

use meshwork_broker::Swept;
use meshwork_model::keys::hero::LegacyList;
use meshwork_model::name::ScriptType;

use super::world::Got;
use super::{Outcome, World, cases, same};

cases![
    a_job_on_no_list_is_pushed_again,
    an_old_worker_that_only_just_took_it_keeps_it,
    a_job_on_a_list_that_nobody_of_ours_reads_is_shared,
    nothing_is_looked_at_without_a_migration,
    ours_and_ended_ones_are_left_alone,
    the_type_is_told_by_the_worker,
    what_tells_no_type_is_counted,
    a_thousand_jobs_are_found_in_steps,
];

const AGE_MS: u64 = 30_000;

async fn start(world: &World, script_type: &str, canonical: bool) -> Outcome {
    let script_type: ScriptType = script_type.parse()?;
    let list = LegacyList::foreign(world.keys().legacy_type_queue(&script_type));
    let age = Duration::from_millis(AGE_MS);
    world
        .broker
        .start_migration(&script_type, list, age)
        .await?;
    if canonical {
        world.broker.canonical_first(&script_type).await?;
    }
    Ok(())
}

/// A job that a client stored, and then died.
async fn store(world: &World, id: &str, fields: &[&str]) -> Outcome {
    let key = world.key(id);
    let words = [&["HSET", &*key, "status", "dispatched"], fields].concat();
    world.raw::<()>(&words).await
}

/// All of it.
async fn sweep(world: &World) -> Got<Swept> {
    let mut all = Swept::default();
    loop {
        let swept = world.broker.sweep(all.next).await?;
        all.next = swept.next;
        all.adopted += swept.adopted;
        all.unroutable += swept.unroutable;
        if all.next == 0 {
            return Ok(all);
        }
    }
}

async fn a_job_on_no_list_is_pushed_again(world: &World) -> Outcome {
    start(world, "osis", false).await?;
    store(world, "j1", &["script", "1"]).await?;
    same!(sweep(world).await?.adopted, 1);
    same!(sweep(world).await?.adopted, 0);
    for pushed in [0, 1] {
        world.pass(AGE_MS);
        same!(world.broker.watch().await?.pushed.len(), pushed);
    }
    same!(world.waiting().await?, ["j1"]);
    same!(world.take_one().await?.job.id, "j1");
    Ok(())
}

/// It is seen twice before it is pushed again: between BLPOP and HSET it stands nowhere.
async fn an_old_worker_that_only_just_took_it_keeps_it(world: &World) -> Outcome {
    start(world, "osis", false).await?;
    store(world, "j1", &["script", "1"]).await?;
    sweep(world).await?;
    world.pass(AGE_MS);
    world.broker.watch().await?;
    world
        .raw::<()>(&["HSET", &world.key("j1"), "status", "started"])
        .await?;
    world.pass(AGE_MS);
    same!(world.broker.watch().await?.pushed.len(), 0);
    same!(world.waiting().await?, [""; 0]);
    Ok(())
}

async fn a_job_on_a_list_that_nobody_of_ours_reads_is_shared(world: &World) -> Outcome {
    start(world, "osis", true).await?;
    let list = world.keys().legacy_work_prefix() + "osis_runner_9";
    store(world, "j1", &["worker_id", "osis_runner_9"]).await?;
    world.raw::<()>(&["LPUSH", &list, "j1"]).await?;
    sweep(world).await?;
    world.pass(AGE_MS);
    world.broker.watch().await?;
    same!(world.waiting().await?, ["j1"]);
    same!(world.list(&list).await?, ["j1"]);
    same!(world.take_one().await?.job.id, "j1");
    same!(world.list(&list).await?, [""; 0]);
    Ok(())
}

async fn nothing_is_looked_at_without_a_migration(world: &World) -> Outcome {
    store(world, "j1", &[]).await?;
    let before = world.all().await?;
    same!(sweep(world).await?, Swept::default());
    world.unchanged(&before).await
}

async fn ours_and_ended_ones_are_left_alone(world: &World) -> Outcome {
    start(world, "osis", false).await?;
    world.put(&["ours"]).await?;
    world
        .put_foreign("ended", &[("status", "finished")])
        .await?;
    world.put_foreign("claimed", &[("script", "1")]).await?;
    world.take(5).await?;
    same!(sweep(world).await?.adopted, 0);
    Ok(())
}

async fn the_type_is_told_by_the_worker(world: &World) -> Outcome {
    for script_type in ["osis", "sal"] {
        start(world, script_type, false).await?;
    }
    for (id, fields) in [
        ("a", ["worker_id", "osis_runner_1"]),
        ("b", ["actor_id", "sal-runner-2"]),
        ("c", ["script_type", "SAL"]),
    ] {
        store(world, id, &fields).await?;
    }
    same!(sweep(world).await?.adopted, 3);
    for (id, script_type) in [("a", "osis"), ("b", "sal"), ("c", "sal")] {
        let queue = world.field(id, "mw_queue").await?;
        same!(queue, Some(world.queue_of(script_type)));
    }
    Ok(())
}

async fn what_tells_no_type_is_counted(world: &World) -> Outcome {
    for script_type in ["osis", "sal"] {
        start(world, script_type, false).await?;
    }
    store(world, "j1", &["worker_id", "osiris"]).await?;
    let before = world.all().await?;
    let swept = sweep(world).await?;
    same!((swept.adopted, swept.unroutable), (0, 1));
    world.unchanged(&before).await?;
    let survey = world.broker.survey().await?;
    same!(survey.unroutable.first.as_deref(), Some("j1"));
    Ok(())
}

async fn a_thousand_jobs_are_found_in_steps(world: &World) -> Outcome {
    start(world, "osis", false).await?;
    for number in 0..1200 {
        store(world, &format!("j{number}"), &[]).await?;
    }
    same!(sweep(world).await?.adopted, 1200);
    Ok(())
}
