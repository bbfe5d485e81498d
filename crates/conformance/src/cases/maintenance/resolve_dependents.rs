//! settle: notifies dependents beyond the number that the end of a job notifies.

use meshwork_broker::Retried;

use crate::cases::dependencies::prerequisites::{after, run, waits};
use crate::cases::harness::legacy_worker::{looked_at, migrate, old};
use crate::cases::store::events::events_of;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    tells_what_was_left_over,
    tells_as_the_end_itself_does,
    a_list_that_is_none_lets_the_job_end,
    tells_a_bounded_number,
    fails_those_of_a_failed_job,
    nobody_to_tell_is_no_error,
    an_end_noted_twice_is_one,
    those_of_a_job_that_runs_again_wait_on,
    a_finished_job_that_is_gone_had_finished,
    a_deleted_job_that_is_there_again_is_waited_for,
    goes_on_after_a_list_that_is_none,
];

/// Stores `first` and this many dependents: `j0`, `j1` …
pub(crate) async fn put_dependants(world: &World, many: usize) -> Outcome {
    world.put(&["first"]).await?;
    for from in (0..many).step_by(1000) {
        let names = from..many.min(from + 1000);
        let jobs: Result<Vec<_>, Failure> = names
            .map(|n| after(world, &format!("j{n}"), &["first"]))
            .collect();
        world.put_jobs(&jobs?).await?;
    }
    Ok(())
}

async fn ready(world: &World) -> Result<usize, Failure> {
    Ok(world.waiting().await?.len())
}

/// The order is that of their submission.
async fn tells_what_was_left_over(world: &World) -> Outcome {
    put_dependants(world, 150).await?;
    run(world, "first", true).await?;
    same!(ready(world).await?, 100);
    check!(waits(world, "j100").await?);
    same!(world.list(&world.named("UNRESOLVED")?).await?, [" first"]);
    check!(!world.broker.resolve_dependents().await?);
    let names: Vec<_> = (0..150).map(|n| format!("j{n}")).collect();
    same!(world.waiting().await?, names);
    let own = [
        world.named("UNRESOLVED")?,
        format!("{}first", world.named("DEPENDENTS")?),
    ];
    let left: usize = world.raw(&["EXISTS", &own[0], &own[1]]).await?;
    same!(left, 0);
    Ok(())
}

/// A dependent with other prerequisites goes on waiting. The others are ready, with a time, without a watch, and on
/// their old list.
async fn tells_as_the_end_itself_does(world: &World) -> Outcome {
    put_dependants(world, 100).await?;
    migrate(world, "dual").await?;
    let mut jobs = [
        world.job("second")?,
        after(world, "free", &["first"])?,
        after(world, "both", &["first", "second"])?,
        after(world, "stranger", &["second"])?,
        after(world, "ready", &["first"])?,
    ];
    for job in &mut jobs[..2] {
        job.route.script_type = "python".parse()?;
    }
    world.put_jobs(&jobs).await?;
    // A list of dependents may name a job that does not wait.
    let next = format!("{}first", world.named("DEPENDENTS")?);
    world.raw::<()>(&["RPUSH", &next, "stranger"]).await?;
    run(world, "first", true).await?;
    let untold = [world.record("stranger").await?, world.record("free").await?];
    check!(looked_at(world, "free").await?.is_some());
    world.pass(2_000);
    check!(!world.broker.resolve_dependents().await?);
    for id in ["ready", "free"] {
        check!(!waits(world, id).await?);
        same!(
            events_of(world, id).await?.pop().as_deref(),
            Some("ready first ")
        );
    }
    same!(looked_at(world, "free").await?, None);
    let at = world.field("free", "updated_at").await?;
    check!(at.as_ref() != untold[1].get("updated_at"));
    same!(
        world.list(&old(world)).await?.pop().as_deref(),
        Some("ready")
    );
    check!(waits(world, "both").await?);
    let open = world.field("both", "mw_waiting").await?.unwrap_or_default();
    check!(open.contains("second") && !open.contains("first"));
    same!(world.record("stranger").await?, untold[0]);
    Ok(())
}

/// The watch notifies the remaining dependents then.
async fn a_list_that_is_none_lets_the_job_end(world: &World) -> Outcome {
    put_dependants(world, 101).await?;
    world
        .raw::<()>(&["SET", &world.named("UNRESOLVED")?, "x"])
        .await?;
    run(world, "first", true).await?;
    same!(world.status("first").await?, "finished");
    same!(ready(world).await?, 100);
    Ok(())
}

/// The answer says whether there are more.
async fn tells_a_bounded_number(world: &World) -> Outcome {
    put_dependants(world, 2500).await?;
    run(world, "first", true).await?;
    for (more, after) in [(true, 1100), (true, 2100), (false, 2500)] {
        same!(world.broker.resolve_dependents().await?, more);
        same!(ready(world).await?, after);
    }
    Ok(())
}

/// Each dependent fails, with the reason.
async fn fails_those_of_a_failed_job(world: &World) -> Outcome {
    put_dependants(world, 150).await?;
    run(world, "first", false).await?;
    check!(!world.broker.resolve_dependents().await?);
    let why = Some("prerequisite first did not finish");
    for n in [0, 99, 100, 149] {
        let job = world.read(&format!("j{n}")).await?;
        same!((job.status.as_str(), job.error.as_deref()), ("error", why));
    }
    same!(ready(world).await?, 0);
    Ok(())
}

/// No entry is written either.
async fn nobody_to_tell_is_no_error(world: &World) -> Outcome {
    check!(!world.broker.resolve_dependents().await?);
    world.unchanged("").await
}

/// The end is noted 2,000 more times.
async fn an_end_noted_twice_is_one(world: &World) -> Outcome {
    put_dependants(world, 110).await?;
    run(world, "first", true).await?;
    let settle = world.named("UNRESOLVED")?;
    let again = vec!["first"; 2000];
    let push: Vec<_> = ["RPUSH", &settle].into_iter().chain(again).collect();
    world.raw::<()>(&push).await?;
    check!(world.broker.resolve_dependents().await?);
    same!(ready(world).await?, 110);
    while world.broker.resolve_dependents().await? {}
    same!(ready(world).await?, 110);
    Ok(())
}

/// The job has not ended: remaining dependents wait for its next end.
async fn those_of_a_job_that_runs_again_wait_on(world: &World) -> Outcome {
    put_dependants(world, 150).await?;
    run(world, "first", true).await?;
    same!(
        world.broker.retry(&world.read("first").await?).await?,
        Retried::Queued
    );
    for _ in 0..2 {
        check!(!world.broker.resolve_dependents().await?);
        check!(waits(world, "j149").await?);
    }
    same!(ready(world).await?, 101);
    world.take(100).await?;
    run(world, "first", true).await?;
    check!(!world.broker.resolve_dependents().await?);
    same!(ready(world).await?, 50);
    Ok(())
}

/// Its record was deleted before all were notified.
async fn a_finished_job_that_is_gone_had_finished(world: &World) -> Outcome {
    for (well, left) in [(true, 2500), (false, 0)] {
        put_dependants(world, 2500).await?;
        run(world, "first", well).await?;
        world.broker.delete(&world.read("first").await?).await?;
        while world.broker.resolve_dependents().await? {}
        same!(ready(world).await?, left);
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// A dependent waits for the job that has the id now.
async fn a_deleted_job_that_is_there_again_is_waited_for(world: &World) -> Outcome {
    put_dependants(world, 3).await?;
    world.broker.delete(&world.read("first").await?).await?;
    world.put(&["first"]).await?;
    check!(!world.broker.resolve_dependents().await?);
    check!(waits(world, "j2").await?);
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["j0", "j1", "j2"]);
    Ok(())
}

/// The key may have another type.
async fn goes_on_after_a_list_that_is_none(world: &World) -> Outcome {
    put_dependants(world, 110).await?;
    run(world, "first", true).await?;
    world.put(&["odd"]).await?;
    let odd = format!("{}odd", world.named("DEPENDENTS")?);
    world.raw::<()>(&["SET", &odd, "x"]).await?;
    world.take(100).await?;
    run(world, "odd", true).await?;
    let settle = world.named("UNRESOLVED")?;
    world.raw::<()>(&["LPUSH", &settle, "odd"]).await?;
    check!(!world.broker.resolve_dependents().await?);
    same!(ready(world).await?, 10);
    Ok(())
}
