//! sweep: finds foreign jobs that no Meshwork script has met, while their type migrates.

use std::time::Duration;

use meshwork_broker::{OrphanScan, Retention, Suspect};
use meshwork_model::keys::hero::LegacyList;
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::outcome::FailureKind;

use crate::cases::dependencies::batches::{open, seal, status};
use crate::cases::harness::options::{delayed, put_keyed, set, taken};
use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, same};

cases![
    a_job_on_no_list_is_pushed_again,
    an_old_worker_that_only_just_took_it_keeps_it,
    a_job_on_a_list_that_nobody_of_ours_reads_is_shared,
    ours_and_ended_ones_are_left_alone,
    the_type_is_told_by_the_worker,
    what_tells_no_type_is_counted,
    a_thousand_jobs_are_found_in_steps,
    a_job_on_a_targeted_queue_is_left_there,
    a_job_without_a_type_is_known_by_its_list,
    a_worker_of_another_type_tells_it,
    its_reply_goes_where_its_list_says,
    what_came_to_a_list_later_goes_back_there,
    jobs_that_a_set_has_lost_are_found_again,
    delayed_jobs_that_their_set_has_lost_wait_on,
    backlogs_and_batches_without_a_next_check_get_one,
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

/// Stores a job of a client that then died.
async fn store(world: &World, id: &str, fields: &[&str]) -> Outcome {
    let key = world.key(id);
    let words = [
        &["HSET", &*key, "status", "dispatched", "script", "1"],
        fields,
    ]
    .concat();
    world.raw::<()>(&words).await
}

/// Runs the whole sweep.
pub(crate) async fn sweep(world: &World) -> Got<OrphanScan> {
    let mut all = OrphanScan::default();
    loop {
        let swept = world.broker.scan_orphans().await?;
        all.next = swept.next;
        all.adopted += swept.adopted;
        all.unroutable += swept.unroutable;
        all.restored += swept.restored;
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
        sweep(world).await?;
        same!(world.broker.check_orphans().await?.pushed.len(), pushed);
    }
    same!(world.waiting().await?, ["j1"]);
    same!(world.take_one().await?.job.id, "j1");
    Ok(())
}

/// A job is seen twice before it is pushed again: between BLPOP and HSET it is on no list.
async fn an_old_worker_that_only_just_took_it_keeps_it(world: &World) -> Outcome {
    start(world, "osis", false).await?;
    store(world, "j1", &["script", "1"]).await?;
    sweep(world).await?;
    world.pass(AGE_MS);
    world.broker.check_orphans().await?;
    world
        .raw::<()>(&["HSET", &world.key("j1"), "status", "started"])
        .await?;
    world.pass(AGE_MS);
    same!(world.broker.check_orphans().await?.pushed.len(), 0);
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
    world.broker.check_orphans().await?;
    same!(world.waiting().await?, ["j1"]);
    same!(world.list(&list).await?, ["j1"]);
    same!(world.take_one().await?.job.id, "j1");
    same!(world.list(&list).await?, [""; 0]);
    Ok(())
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
    let before = world.record("j1").await?;
    let swept = sweep(world).await?;
    same!((swept.adopted, swept.unroutable), (1, 1));
    same!(look(world).await?, [""; 0]);
    same!(world.record("j1").await?, before);
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

/// Returns each existing canonical list of the migrating type.
fn targeted(world: &World) -> [(&'static str, String); 4] {
    let queue = |name: &str| world.queue_of(name);
    [
        ("g", queue("osis:group:io")),
        ("i", queue("osis:group:io:inst:7")),
        ("p", queue("osis:group:io:prio:0")),
        ("t", queue("osis:prio:2")),
    ]
}

/// Checks for a while, with walks in between. Returns the ids that were pushed again.
async fn look(world: &World) -> Got<Vec<String>> {
    let mut pushed = Vec::new();
    for _ in 0..5 {
        sweep(world).await?;
        world.pass(AGE_MS);
        pushed.extend(world.broker.check_orphans().await?.pushed);
    }
    Ok(pushed)
}

/// Only its worker takes it from there; the migration may end.
async fn a_job_on_a_targeted_queue_is_left_there(world: &World) -> Outcome {
    start(world, "osis", true).await?;
    for (id, list) in targeted(world) {
        store(world, id, &["script", "1", "script_type", "OSIS"]).await?;
        world.raw::<()>(&["LPUSH", &list, id]).await?;
    }
    same!(look(world).await?, [""; 0]);
    same!(world.waiting().await?, [""; 0]);
    for (id, list) in targeted(world) {
        same!(world.list(&list).await?, [id]);
    }
    let survey = world.broker.survey().await?;
    same!(survey.of("osis").map(|of| of.adrift.count), Some(0));
    let osis: ScriptType = "osis".parse()?;
    let ended = world.broker.finish_migration(&osis, true).await?;
    same!(ended, meshwork_broker::Ended::Done);
    Ok(())
}

/// The job is never pushed to a queue of another type, and nothing is written into it.
async fn a_job_without_a_type_is_known_by_its_list(world: &World) -> Outcome {
    start(world, "osis", true).await?;
    let lists = [
        ("j1", world.queue_of("sal")),
        ("j2", world.queue_of("sal:group:io:inst:3")),
    ];
    for (id, list) in &lists {
        store(world, id, &["script", "1"]).await?;
        world.raw::<()>(&["LPUSH", list, id]).await?;
    }
    let records = (world.record("j1").await?, world.record("j2").await?);
    same!(look(world).await?, [""; 0]);
    same!(
        (world.record("j1").await?, world.record("j2").await?),
        records
    );
    let list = world.queue_of("osis:group:io");
    store(world, "j3", &["script", "1"]).await?;
    world.raw::<()>(&["LPUSH", &list, "j3"]).await?;
    same!(look(world).await?, [""; 0]);
    same!(world.field("j3", "mw_queue").await?, Some(list.clone()));
    same!(world.field("j3", "script_type").await?, None);
    // Its worker pops it and dies: the job returns to its list.
    world.raw::<()>(&["LPOP", &list]).await?;
    same!(look(world).await?, ["j3"]);
    same!(world.list(&list).await?, ["j3"]);
    let survey = world.broker.survey().await?;
    same!(
        (
            survey.unroutable.count,
            survey.of("sal").map(|of| of.adrift.count)
        ),
        (0, Some(0))
    );
    Ok(())
}

/// The job is not pushed to the only type that migrates.
async fn a_worker_of_another_type_tells_it(world: &World) -> Outcome {
    start(world, "osis", true).await?;
    store(world, "j1", &["script", "1", "worker_id", "sal_runner_1"]).await?;
    store(world, "j2", &["script", "1"]).await?;
    world
        .raw::<()>(&["LPUSH", &world.queue_of("wasm"), "x"])
        .await?;
    same!(look(world).await?, [""; 0]);
    same!(world.waiting().await?, [""; 0]);
    Ok(())
}

/// This includes a job that was lost after it had been seen there.
async fn its_reply_goes_where_its_list_says(world: &World) -> Outcome {
    start(world, "osis", true).await?;
    let legacy = |id: &str| format!("{}{id}", world.keys().legacy_reply_prefix());
    let old = world.keys().legacy_type_queue(&"osis".parse()?);
    for (id, list) in [
        ("new", world.queue()),
        ("old", old),
        ("none", String::new()),
    ] {
        store(world, id, &["script", "1", "script_type", "OSIS"]).await?;
        if !list.is_empty() {
            world.raw::<()>(&["LPUSH", &list, id]).await?;
            sweep(world).await?;
            world.pass(AGE_MS);
            world.broker.check_orphans().await?;
            world.raw::<()>(&["DEL", &list, &world.queue()]).await?;
        }
    }
    let mut pushed = look(world).await?;
    pushed.sort();
    same!(pushed, ["new", "none", "old"]);
    let taken = world.take(5).await?;
    same!(taken.len(), 3);
    for claimed in taken {
        world.finish(&claimed, "42").await?;
    }
    for (id, on_new, on_old) in [("new", 1, 0), ("old", 0, 1), ("none", 1, 1)] {
        let lengths = (
            world.list(&world.reply(id)).await?.len(),
            world.list(&legacy(id)).await?.len(),
        );
        same!((id, lengths), (id, (on_new, on_old)));
    }
    Ok(())
}

/// The job was on no list when it was first seen.
async fn what_came_to_a_list_later_goes_back_there(world: &World) -> Outcome {
    start(world, "osis", true).await?;
    store(world, "j1", &["script", "1", "script_type", "OSIS"]).await?;
    same!(sweep(world).await?.adopted, 1);
    let list = world.queue_of("osis:group:io");
    world.raw::<()>(&["LPUSH", &list, "j1"]).await?;
    same!(look(world).await?, [""; 0]);
    world.raw::<()>(&["LPOP", &list]).await?;
    same!(look(world).await?, ["j1"]);
    same!(world.list(&list).await?, ["j1"]);
    Ok(())
}

/// The sets of dead letters, of ended jobs, and of jobs that wait for others.
async fn jobs_that_a_set_has_lost_are_found_again(world: &World) -> Outcome {
    let claimed = world.started("dead").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    let claimed = world.started("ended").await?;
    world.finish(&claimed, "1").await?;
    world.put(&["first"]).await?;
    let mut waits = world.job("waits")?;
    waits.depends_on = vec!["first".parse()?];
    waits.prerequisite_timeout = Some(AGE_MS / 1_000);
    world.put_jobs(&[waits]).await?;
    store(world, "foreign", &["status", "error", "mw_dead", "failed"]).await?;
    let (keys, before) = (world.keys(), world.events().await?.len());
    let sets = [keys.dead(), keys.ended(), keys.watch()];
    let ids = ["dead", "ended", "waits"];
    for set in &sets {
        world.raw::<()>(&["DEL", set]).await?;
    }
    same!(sweep(world).await?.adopted, 3);
    world.broker.check_orphans().await?;
    for (set, id) in sets.iter().zip(ids) {
        let found: Vec<String> = world.raw(&["ZRANGE", set, "0", "-1"]).await?;
        same!(found, [id]);
    }
    same!(world.events().await?.len(), before + 2);
    let there = ["dead", "ended"].map(|id| Suspect {
        id: JobId::foreign(id.to_owned()),
        script_type: None,
        queue: None,
    });
    same!(world.broker.track_orphans(&there).await?, 0);
    world.pass(60_000);
    same!(sweep(world).await?.adopted, 0);
    world.broker.check_orphans().await?;
    same!(world.status("waits").await?, "error");
    Ok(())
}

/// They do not run early.
async fn delayed_jobs_that_their_set_has_lost_wait_on(world: &World) -> Outcome {
    let jobs = [
        delayed(world, "soon", 1_000)?,
        delayed(world, "late", 3_600_000)?,
    ];
    world.put_jobs(&jobs).await?;
    let set = world.keys().delayed();
    world.raw::<()>(&["DEL", &set]).await?;
    world.pass(2_000);
    same!(sweep(world).await?.adopted, 1);
    let found: Vec<String> = world
        .raw(&["ZRANGE", &set, "0", "-1", "WITHSCORES"])
        .await?;
    same!(found, ["late".to_owned(), (START + 3_600_000).to_string()]);
    world.pass(AGE_MS);
    world.broker.check_orphans().await?;
    world.pass(AGE_MS);
    world.broker.check_orphans().await?;
    same!(world.waiting().await?, ["soon"]);
    Ok(())
}

/// The sets of the next checks of backlogs, of open batches, and of ended ones.
async fn backlogs_and_batches_without_a_next_check_get_one(world: &World) -> Outcome {
    set(world, "key_concurrency=1").await?;
    put_keyed(world, "k", &["a", "b"]).await?;
    same!(taken(world, 2).await?, ["a"]);
    open(world, "ended", &[]).await?;
    seal(world, "ended").await?;
    open(world, "open", &[]).await?;
    let keys = world.keys();
    let sets = [
        keys.backlog_index(),
        keys.batches_open(),
        keys.batches_ended(),
    ];
    for set in &sets {
        world.raw::<()>(&["DEL", set]).await?;
    }
    sweep(world).await?;
    let ended = status(world, "ended").await?.ended_ms;
    world.broker.sweep_batches(Retention::default()).await?;
    let backlog = format!("{} k", world.queue());
    for (set, name) in sets.iter().zip([&*backlog, "open", "ended"]) {
        let found: Vec<String> = world.raw(&["ZRANGE", set, "0", "-1"]).await?;
        same!(found, [name]);
    }
    let score: Option<u64> = world.raw(&["ZSCORE", &sets[2], "ended"]).await?;
    same!(score, ended);
    Ok(())
}
