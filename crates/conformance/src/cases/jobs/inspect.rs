//! inspect: reads show the state, and change nothing.

use std::collections::BTreeSet;

use meshwork_broker::{Error, MAX_ITEMS};
use meshwork_model::job::When;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::state::Status;

use crate::cases::harness::world::{ALIVE_MS, START, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    shows_a_job,
    shows_several_in_order,
    shows_outcomes_without_what_went_in,
    shows_summaries_without_results,
    shows_records_of_few_fields,
    tells_statuses_in_order,
    refuses_more_than_a_thousand,
    lists_every_job_once,
    lists_jobs_only,
    passes_over_what_is_no_job,
    reads_bytes_that_are_no_text,
    shows_queues_and_who_listens,
    a_queue_is_noted_by_its_first_job,
    queues_are_found_beside_many_keys,
    counts_what_runs,
    changes_nothing,
];

/// The answer is a job's record, or that there is none.
async fn shows_a_job(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    let job = world.broker.inspect(&"j1".parse()?).await?;
    same!(job.map(|job| job.id), Some("j1".to_owned()));
    same!(world.broker.inspect(&"j2".parse()?).await?, None);
    Ok(())
}

fn wanted(ids: &[&str]) -> Vec<JobId> {
    ids.iter()
        .map(|id| JobId::foreign((*id).to_owned()))
        .collect()
}

/// There is one answer per id, in order.
async fn shows_several_in_order(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    let jobs = world
        .broker
        .inspect_many(&wanted(&["j2", "none", "j1", "j2"]))
        .await?;
    let ids: Vec<_> = jobs
        .iter()
        .map(|job| job.as_ref().map(|j| j.id.as_str()))
        .collect();
    same!(ids, [Some("j2"), None, Some("j1"), Some("j2")]);
    check!(world.broker.inspect_many(&[]).await?.is_empty());
    Ok(())
}

/// The outcome of jobs comes without script and input, which may be large.
async fn shows_outcomes_without_what_went_in(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.input = Some(b"in".to_vec());
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world
        .broker
        .complete(&claimed, b"42", b"out", b"err")
        .await?;
    let mut whole = world.read("j1").await?;
    (whole.script, whole.input) = (Vec::new(), None);
    whole.other.clear();
    let outcomes = world.broker.outcomes(&wanted(&["none", "j1"])).await?;
    same!(outcomes, [None, Some(whole)]);
    check!(world.broker.outcomes(&[]).await?.is_empty());
    Ok(())
}

/// A summary has neither input nor output.
async fn shows_summaries_without_results(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world
        .broker
        .complete(&claimed, b"42", b"out", b"err")
        .await?;
    let claimed = world.started("j2").await?;
    world.fail(&claimed, FailureKind::Script).await?;
    let jobs = world.broker.summaries(&wanted(&["j2", "j1"])).await?;
    let seen: Vec<_> = jobs
        .iter()
        .flatten()
        .map(|job| {
            (
                job.id.as_str(),
                job.status.as_str(),
                job.error.as_deref(),
                job.attempt,
            )
        })
        .collect();
    same!(
        seen,
        [
            ("j2", "error", Some("boom"), 1),
            ("j1", "finished", None, 1)
        ]
    );
    for job in jobs.iter().flatten() {
        check!(job.output.is_none() && job.script.is_empty() && job.stdout.is_empty());
    }
    Ok(())
}

/// A record with only a script, as from a command line, is in every view.
async fn shows_records_of_few_fields(world: &World) -> Outcome {
    world.put_foreign("j1", &[("script", "1")]).await?;
    let ids = wanted(&["j1"]);
    check!(world.broker.inspect(&ids[0]).await?.is_some());
    check!(world.broker.outcomes(&ids).await?[0].is_some());
    check!(world.broker.summaries(&ids).await?[0].is_some());
    same!(listed(world).await?, ["j1".to_owned()].into());
    Ok(())
}

/// Statuses come in the order of the ids, too.
async fn tells_statuses_in_order(world: &World) -> Outcome {
    let done = world.started("done").await?;
    world.finish(&done, "42").await?;
    world.started("runs").await?;
    world.put(&["waits"]).await?;
    world.put_foreign("odd", &[("status", "novel")]).await?;
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    let statuses = world
        .broker
        .statuses(&wanted(&["waits", "none", "odd", "list", "done", "runs"]))
        .await?;
    use Status::{Dispatched, Finished, Started};
    let expected = [
        Some(Dispatched),
        None,
        None,
        None,
        Some(Finished),
        Some(Started),
    ];
    same!(statuses, expected);
    check!(world.broker.statuses(&[]).await?.is_empty());
    Ok(())
}

/// A bound keeps calls from blocking the server.
async fn refuses_more_than_a_thousand(world: &World) -> Outcome {
    let many = vec![JobId::foreign("j1".to_owned()); MAX_ITEMS + 1];
    let (records, statuses) = (
        world.broker.inspect_many(&many).await,
        world.broker.statuses(&many).await,
    );
    check!(matches!(records, Err(Error::TooMany { .. })));
    check!(matches!(statuses, Err(Error::TooMany { .. })));
    let outcomes = world.broker.outcomes(&many).await;
    check!(matches!(outcomes, Err(Error::TooMany { .. })));
    Ok(())
}

/// Returns the ids of all jobs, page by page.
async fn listed(world: &World) -> Result<BTreeSet<String>, Failure> {
    let mut ids = BTreeSet::new();
    let mut from = 0;
    loop {
        let page = world.broker.list(from).await?;
        ids.extend(page.jobs.into_iter().map(|job| job.id));
        from = page.next;
        if from == 0 {
            return Ok(ids);
        }
    }
}

/// Several pages miss no job.
async fn lists_every_job_once(world: &World) -> Outcome {
    let ids: Vec<_> = (0..900).map(|n| format!("j{n}")).collect();
    world
        .put(&ids.iter().map(String::as_str).collect::<Vec<_>>())
        .await?;
    same!(listed(world).await?, ids.into_iter().collect());
    Ok(())
}

/// Queues, leases and lists of older clients are no jobs; nor are the jobs of another namespace.
async fn lists_jobs_only(world: &World) -> Outcome {
    check!(listed(world).await?.is_empty());
    world.put(&["j1"]).await?;
    world.started("j2").await?;
    world.renew(WORKER, &[]).await?;
    world
        .raw::<()>(&["LPUSH", &world.key("osis_runner_1"), "j1"])
        .await?;
    same!(
        listed(world).await?,
        ["j1".to_owned(), "j2".to_owned()].into()
    );
    Ok(())
}

/// A list with the name of a job does not count as a job.
async fn passes_over_what_is_no_job(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    let jobs = world.broker.inspect_many(&wanted(&["list", "j1"])).await?;
    let ids: Vec<_> = jobs.into_iter().map(|job| job.map(|j| j.id)).collect();
    same!(ids, [None, Some("j1".to_owned())]);
    Ok(())
}

/// Values of a foreign client in its own encoding hide neither its job nor others.
async fn reads_bytes_that_are_no_text(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    for (key, field) in [(b"bytes".as_slice(), b"\xff".as_slice()), (b"\xfe", b"a")] {
        let mut set = redis::cmd("HSET");
        set.arg([world.key("").as_bytes(), key].concat());
        set.arg(field).arg(b"\xfd").arg("status").arg(b"\xfc");
        set.query_async::<()>(&mut world.conn().clone()).await?;
    }
    let listed = listed(world).await?;
    check!(listed.contains("j1") && listed.contains("bytes"));
    same!(
        world.broker.statuses(&wanted(&["bytes", "j1"])).await?,
        [None, Some(Status::Dispatched)]
    );
    Ok(())
}

/// The answer has every queue that has ids or a live listener.
async fn shows_queues_and_who_listens(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.route.script_type = "sal".parse()?;
    world
        .put_jobs(&[job, world.job("j2")?, world.job("j3")?])
        .await?;
    world.renew("w1-a", &[]).await?;
    world.pass(ALIVE_MS / 2);
    world.renew("w2-b", &[]).await?;
    let seen = |queues: Vec<meshwork_broker::QueueInfo>| -> Vec<_> {
        queues
            .into_iter()
            .map(|info| (info.queue, info.waiting, info.listeners, info.running))
            .collect()
    };
    let (osis, sal) = (world.queue(), world.queue_of("sal"));
    let queues = seen(world.broker.queues().await?);
    same!(queues, [(osis.clone(), 2, 2, 0), (sal.clone(), 1, 0, 0)]);
    check!(world.broker.is_listened(&osis).await?);
    check!(!world.broker.is_listened(&sal).await?);
    world.pass(ALIVE_MS / 2);
    world.take(2).await?;
    let queues = seen(world.broker.queues().await?);
    same!(queues, [(osis.clone(), 0, 1, 2), (sal.clone(), 1, 0, 0)]);
    world.pass(ALIVE_MS / 2);
    let queues = seen(world.broker.queues().await?);
    same!(queues, [(sal, 1, 0, 0)]);
    check!(!world.broker.is_listened(&osis).await?);
    Ok(())
}

/// Each push to an empty queue notes it; a push to others writes nothing more.
async fn a_queue_is_noted_by_its_first_job(world: &World) -> Outcome {
    let noted = async || {
        let range = [
            "ZRANGE",
            &world.keys().known_lists(),
            "0",
            "-1",
            "WITHSCORES",
        ];
        world.raw::<Vec<String>>(&range).await
    };
    world.put(&["j1"]).await?;
    same!(noted().await?, [world.queue(), START.to_string()]);
    world.pass(1);
    world.put(&["j2"]).await?;
    same!(noted().await?, [world.queue(), START.to_string()]);
    world.take(2).await?;
    let mut delayed = world.job("j3")?;
    delayed.when = Some(When::In(9_000));
    world.put_jobs(&[delayed]).await?;
    same!(noted().await?, [world.queue(), START.to_string()]);
    world
        .raw::<()>(&["HSET", &world.keys().config(), "limit", "9"])
        .await?;
    world.put(&["j4", "j5"]).await?;
    same!(noted().await?, [world.queue(), (START + 1).to_string()]);
    Ok(())
}

/// The number of keys that are read has a limit.
async fn queues_are_found_beside_many_keys(world: &World) -> Outcome {
    let many = "for i = 1, 40000 do redis.call('SET', KEYS[1] .. i, i) end";
    world
        .raw::<()>(&["EVAL", many, "1", &world.key("other")])
        .await?;
    world.put(&["j1"]).await?;
    let queues = async || -> Result<Vec<String>, Failure> {
        let queues = world.broker.queues().await?.into_iter();
        Ok(queues.map(|info| info.queue).collect())
    };
    same!(queues().await?, [world.queue()]);
    world.take(1).await?;
    check!(world.broker.running().await? == 1);
    same!(queues().await?, [world.queue()]);
    world.lose_all().await?;
    let job = world.take_one().await?;
    world.finish(&job, "42").await?;
    check!(queues().await?.is_empty());
    Ok(())
}

/// The count is that of the leases.
async fn counts_what_runs(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    same!(world.broker.running().await?, 0);
    let held = world.take(2).await?;
    same!(world.broker.running().await?, 2);
    world.finish(&held[0], "42").await?;
    same!(world.broker.running().await?, 1);
    Ok(())
}

/// Reads leave no trace.
async fn changes_nothing(world: &World) -> Outcome {
    world.started("j1").await?;
    world.put(&["j2"]).await?;
    world.renew(WORKER, &[]).await?;
    let before = world.all().await?;
    world.pass(ALIVE_MS * 10);
    let ids = wanted(&["j1", "j2", "none"]);
    world.broker.inspect_many(&ids).await?;
    world.broker.statuses(&ids).await?;
    listed(world).await?;
    world.broker.queues().await?;
    world.broker.is_listened(&world.queue()).await?;
    world.broker.running().await?;
    world.unchanged(&before).await
}
