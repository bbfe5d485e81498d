//! import: parts of an export, stored once.

use std::collections::BTreeMap;

use meshwork_model::export::{Bytes, StoredJob, StoredRecord};
use meshwork_model::name::BatchId;

use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, same};

cases![
    import_leaves_jobs_that_exist,
    import_lists_jobs_by_their_status,
    import_queues_jobs_once_and_in_order,
    import_wakes_dependents,
    import_of_a_dependent_of_an_ended_job_is_looked_at_soon,
    import_of_a_callback_waits_for_its_batch,
    import_takes_unique_names,
    import_raises_the_counter_of_keys,
    import_fills_batches_that_do_not_exist,
    import_leaves_records_that_exist,
];

/// A job as an export has it.
pub(crate) fn job(id: &str, status: &str, more: &[(&str, &str)]) -> StoredJob {
    let fields = [
        ("id", id),
        ("script_type", "osis"),
        ("script", "1"),
        ("status", status),
        ("mw_reply", "0"),
    ];
    let fields = fields.iter().chain(more);
    let fields = fields.map(|(name, value)| ((*name).to_owned(), Bytes(value.as_bytes().to_vec())));
    StoredJob {
        id: id.to_owned(),
        delayed: None,
        dead: None,
        ended: None,
        fields: fields.collect(),
    }
}

async fn import(world: &World, jobs: &[StoredJob]) -> Got<usize> {
    Ok(world.broker.import_jobs(jobs).await?)
}

async fn score(world: &World, set: &str, id: &str) -> Got<Option<u64>> {
    let score: Option<f64> = world.raw(&["ZSCORE", set, id]).await?;
    Ok(score.map(|score| score as u64))
}

async fn import_leaves_jobs_that_exist(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let jobs = [job("j1", "finished", &[]), job("j2", "finished", &[])];
    same!(import(world, &jobs).await?, 1);
    same!(world.status("j1").await?, "dispatched");
    same!(world.status("j2").await?, "finished");
    same!(import(world, &jobs).await?, 0);
    Ok(())
}

async fn import_lists_jobs_by_their_status(world: &World) -> Outcome {
    let mut jobs = [
        job("late", "dispatched", &[("mw_with", "1")]),
        job("dead", "error", &[]),
        job("done", "finished", &[]),
        job("soon", "dispatched", &[]),
    ];
    jobs[0].delayed = Some((START + 500).to_string());
    jobs[1].dead = Some("10".to_owned());
    jobs[2].ended = Some("20".to_owned());
    same!(import(world, &jobs).await?, 4);
    same!(
        score(world, &world.keys().delayed(), "late").await?,
        Some(START + 500)
    );
    same!(score(world, &world.keys().dead(), "dead").await?, Some(10));
    same!(score(world, &world.keys().ended(), "done").await?, Some(20));
    same!(
        world.field("soon", "mw_import").await?.as_deref(),
        Some("1")
    );
    for id in ["late", "dead", "done"] {
        same!(world.field(id, "mw_import").await?, None);
    }
    same!(world.waiting().await?, Vec::<String>::new());
    let due = world.keys().due();
    same!(world.raw::<u64>(&["LLEN", &due]).await?, 1);
    Ok(())
}

async fn import_queues_jobs_once_and_in_order(world: &World) -> Outcome {
    let jobs = ["a", "b", "c"].map(|id| job(id, "dispatched", &[]));
    import(world, &jobs).await?;
    world.put(&["own"]).await?;
    let ids = ["b", "gone", "a", "own", "c"].map(str::to_owned);
    let queue = world.queue();
    same!(world.broker.import_queue(&queue, &ids).await?, 3);
    same!(world.broker.import_queue(&queue, &ids).await?, 0);
    for id in ["own", "b", "a", "c"] {
        let claimed = world.take_one().await?;
        same!(claimed.job.id, id);
        world.finish(&claimed, "1").await?;
    }
    Ok(())
}

async fn import_wakes_dependents(world: &World) -> Outcome {
    let queue = world.queue();
    let waits = [("mw_waiting", "\"first\""), ("mw_queue", queue.as_str())];
    import(world, &[job("after", "dispatched", &waits)]).await?;
    same!(world.field("after", "mw_import").await?, None);
    // The watchdog leaves it alone until its prerequisite has come.
    let look = score(world, &world.keys().watch(), "after").await?;
    same!(look, Some(START + 3_600_000));
    import(world, &[job("first", "dispatched", &[])]).await?;
    world
        .broker
        .import_queue(&queue, &["first".to_owned()])
        .await?;
    let claimed = world.take_one().await?;
    same!(claimed.job.id, "first");
    world.finish(&claimed, "1").await?;
    same!(world.waiting().await?, ["after"]);
    Ok(())
}

async fn import_of_a_dependent_of_an_ended_job_is_looked_at_soon(world: &World) -> Outcome {
    import(world, &[job("first", "finished", &[])]).await?;
    let waits = [("mw_waiting", "\"first\"")];
    import(world, &[job("after", "dispatched", &waits)]).await?;
    same!(
        score(world, &world.keys().watch(), "after").await?,
        Some(START)
    );
    let waits = [("mw_waiting", "\"second\""), ("mw_expires", "77")];
    import(world, &[job("other", "dispatched", &waits)]).await?;
    same!(
        score(world, &world.keys().watch(), "other").await?,
        Some(77)
    );
    Ok(())
}

async fn import_of_a_callback_waits_for_its_batch(world: &World) -> Outcome {
    let waits = [("mw_waiting", "\"batch b\""), ("mw_callback", "done b")];
    import(world, &[job("callback", "dispatched", &waits)]).await?;
    same!(score(world, &world.keys().watch(), "callback").await?, None);
    same!(world.field("callback", "mw_import").await?, None);
    Ok(())
}

async fn import_takes_unique_names(world: &World) -> Outcome {
    let created = |at: &'static str| ("created_at", at);
    let old = meshwork_model::time::iso(START - 400);
    let jobs = [
        job("u1", "dispatched", &[("mw_unique", "done osis:one")]),
        job(
            "u2",
            "dispatched",
            &[("mw_unique", "started osis:two"), ("mw_attempt", "1")],
        ),
        job("u3", "finished", &[("mw_unique", "done osis:three")]),
        job(
            "u4",
            "dispatched",
            &[("mw_unique", "1000 osis:four"), ("created_at", &old)],
        ),
        job(
            "u5",
            "dispatched",
            &[
                ("mw_unique", "1000 osis:five"),
                created("2001-01-01T00:00:00.000Z"),
            ],
        ),
        job("u6", "dispatched", &[("mw_unique", "done osis:one")]),
    ];
    import(world, &jobs).await?;
    let prefix = world.keys().prefix();
    let mut holders = Vec::new();
    for name in ["one", "two", "three", "four", "five"] {
        let key = format!("{prefix}q:unique:osis:{name}");
        holders.push(world.raw::<Option<String>>(&["GET", &key]).await?);
    }
    let some = |id: &str| Some(id.to_owned());
    same!(holders, [some("u1"), None, None, some("u4"), None]);
    Ok(())
}

async fn import_raises_the_counter_of_keys(world: &World) -> Outcome {
    let jobs = [
        job(
            "k1",
            "dispatched",
            &[("mw_key", "a"), ("mw_seq", "9"), ("mw_with", "1")],
        ),
        job(
            "k2",
            "dispatched",
            &[("mw_key", "a"), ("mw_seq", "3"), ("mw_with", "1")],
        ),
    ];
    import(world, &jobs).await?;
    let mut next = world.job("next")?;
    next.key = Some("a".to_owned());
    world.put_jobs(&[next]).await?;
    same!(world.field("next", "mw_seq").await?.as_deref(), Some("10"));
    Ok(())
}

fn record(name: &str, due: Option<&str>) -> StoredRecord {
    let fields = [("total", "2"), ("name", "n")];
    let fields = fields.map(|(name, value)| (name.to_owned(), Bytes(value.as_bytes().to_vec())));
    StoredRecord {
        name: name.to_owned(),
        due: due.map(str::to_owned),
        ended: None,
        fields: BTreeMap::from(fields),
    }
}

async fn import_fills_batches_that_do_not_exist(world: &World) -> Outcome {
    let ids = ["j1", "j2"].map(str::to_owned);
    for _ in 0..2 {
        world.broker.import_members("b", &ids).await?;
        world.broker.import_joined("b", &ids).await?;
    }
    let id: BatchId = "b".parse()?;
    let [members, joined] = [world.keys().members(&id), world.keys().joined(&id)];
    same!(world.raw::<u64>(&["SCARD", &members]).await?, 2);
    same!(
        world
            .raw::<Vec<String>>(&["LRANGE", &joined, "0", "-1"])
            .await?,
        ids
    );
    same!(world.broker.import_batch(&record("b", Some("5"))).await?, 1);
    world.raw::<()>(&["DEL", &members, &joined]).await?;
    world.broker.import_members("b", &ids).await?;
    world.broker.import_joined("b", &ids).await?;
    same!(world.raw::<u64>(&["EXISTS", &members, &joined]).await?, 0);
    Ok(())
}

async fn import_leaves_records_that_exist(world: &World) -> Outcome {
    same!(world.broker.import_batch(&record("b", Some("5"))).await?, 1);
    same!(
        score(world, &world.keys().batches_open(), "b").await?,
        Some(5)
    );
    same!(world.broker.import_batch(&record("b", Some("6"))).await?, 0);
    same!(
        score(world, &world.keys().batches_open(), "b").await?,
        Some(5)
    );
    same!(world.broker.import_schedule(&record("s", None)).await?, 1);
    same!(score(world, &world.keys().schedules(), "s").await?, None);
    let key = world.keys().schedule(&"s".parse()?);
    same!(
        world
            .raw::<Option<String>>(&["HGET", &key, "name"])
            .await?
            .as_deref(),
        Some("n")
    );
    Ok(())
}
