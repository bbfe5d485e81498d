//! Unique names: one job with a name is accepted at a time.

use meshwork_broker::Enqueued;
use meshwork_model::job::{NewJob, OnDuplicate, Unique, Until, When};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::options::{delayed, promote, taken};
use crate::cases::harness::world::Got;
use crate::cases::{Outcome, World, cases, check, same};

use Enqueued::{Exists, Kept, Stored, Taken};

cases![
    whose_name_it_is_and_what_becomes_of_a_later_one,
    a_window_ends_with_its_time,
    a_window_holds_against_a_job_without_one,
    a_name_is_free_however_its_job_ends,
    a_name_is_kept_through_retries_and_losses,
    a_replaced_job_says_by_whom,
    a_replaced_run_does_not_free_the_name_of_its_successor,
    only_the_last_of_a_burst_runs,
    only_the_first_of_a_window_runs,
    each_type_has_names_of_its_own,
    the_same_id_is_the_same_job,
    what_is_not_stored_takes_no_name,
    an_ended_job_that_runs_again_has_its_name_again,
    a_holder_that_others_ended_holds_nothing,
    several_of_one_call,
];

const WINDOW: u64 = 600_000;

fn job(world: &World, id: &str, until: Until, policy: OnDuplicate) -> Got<NewJob> {
    let mut job = world.job(id)?;
    let name = "the one".to_owned();
    job.unique = Some(Unique {
        name,
        until,
        policy,
    });
    job.retries = 1;
    Ok(job)
}

async fn put(world: &World, id: &str, until: Until, policy: OnDuplicate) -> Got<Enqueued> {
    let mut said = world
        .broker
        .enqueue(&[job(world, id, until, policy)?])
        .await?;
    said.pop()
        .ok_or_else(|| crate::cases::Failure::new("no answer"))
}

/// Returns the key of the name.
fn name(world: &World) -> Got<String> {
    Ok(format!("{}osis:the one", world.named("UNIQUE")?))
}

async fn holder(world: &World) -> Got<Option<String>> {
    world.raw(&["GET", &name(world)?]).await
}

const HOLDERS: [&str; 5] = ["waiting", "delayed", "running", "ended", "deleted"];

/// Brings a job that holds the name into a state.
async fn hold(world: &World, until: Until, state: &str) -> Outcome {
    let mut first = job(world, "first", until, OnDuplicate::Keep)?;
    if state == "delayed" {
        first.when = Some(When::In(5_000));
    }
    world.put_jobs(&[first]).await?;
    if matches!(state, "running" | "ended") {
        let run = world.take_one().await?;
        if state == "ended" {
            world.finish(&run, "42").await?;
        }
    }
    if state == "deleted" {
        world.broker.delete(&world.read("first").await?).await?;
    }
    Ok(())
}

/// Tests every policy with each duration and each state of the other job.
async fn whose_name_it_is_and_what_becomes_of_a_later_one(world: &World) -> Outcome {
    for until in [Until::Done, Until::Started, Until::For(WINDOW)] {
        for state in HOLDERS {
            let taken = match until {
                Until::Done => matches!(state, "waiting" | "delayed" | "running"),
                Until::Started => matches!(state, "waiting" | "delayed"),
                Until::For(_) => true,
            };
            for policy in [OnDuplicate::Keep, OnDuplicate::Refuse, OnDuplicate::Replace] {
                let about = (until, state, policy);
                hold(world, until, state).await?;
                let was = world.status("first").await?;
                let should = match policy {
                    _ if !taken => Stored,
                    OnDuplicate::Keep => Kept("first".parse()?),
                    OnDuplicate::Refuse => Taken("first".parse()?),
                    OnDuplicate::Replace => Stored,
                };
                let said = put(world, "second", until, policy).await?;
                same!((about, &said), (about, &should));
                let stored = !world.record("second").await?.is_empty();
                same!((about, stored), (about, should == Stored));
                let stopped = taken && policy == OnDuplicate::Replace && was == "dispatched";
                let is = if stopped { "error".to_owned() } else { was };
                same!((about, world.status("first").await?), (about, is));
                let has = if stored { "second" } else { "first" };
                same!((about, holder(world).await?.as_deref()), (about, Some(has)));
                world.raw::<()>(&["FLUSHDB"]).await?;
            }
        }
    }
    Ok(())
}

/// The window ends by the server's clock, whatever the state of the job.
async fn a_window_ends_with_its_time(world: &World) -> Outcome {
    put(world, "a", Until::For(WINDOW), OnDuplicate::Keep).await?;
    let left: u64 = world.raw(&["PTTL", &name(world)?]).await?;
    check!(left > WINDOW / 2 && left <= WINDOW);
    // The server deletes the key at that time.
    world.raw::<()>(&["DEL", &name(world)?]).await?;
    same!(
        put(world, "b", Until::For(WINDOW), OnDuplicate::Keep).await?,
        Stored
    );
    same!(taken(world, 2).await?, ["a", "b"]);
    world.raw::<()>(&["DEL", &name(world)?]).await?;
    put(world, "c", Until::Done, OnDuplicate::Keep).await?;
    let left: i64 = world.raw(&["PTTL", &name(world)?]).await?;
    same!(left, -1);
    Ok(())
}

/// The holder decides: its window outlasts its end, its retention, and a later job's own rule.
async fn a_window_holds_against_a_job_without_one(world: &World) -> Outcome {
    put(world, "a", Until::For(WINDOW), OnDuplicate::Keep).await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    for until in [Until::Done, Until::Started, Until::For(1)] {
        let said = put(world, "b", until, OnDuplicate::Keep).await?;
        same!(said, Kept("a".parse()?));
        let said = put(world, "b", until, OnDuplicate::Refuse).await?;
        same!(said, Taken("a".parse()?));
    }
    world.broker.delete(&world.read("a").await?).await?;
    let said = put(world, "b", Until::Done, OnDuplicate::Keep).await?;
    same!(said, Kept("a".parse()?));
    let left: u64 = world.raw(&["PTTL", &name(world)?]).await?;
    check!(left > WINDOW / 2 && left <= WINDOW);
    let said = put(world, "b", Until::Done, OnDuplicate::Replace).await?;
    same!(said, Stored);
    let left: i64 = world.raw(&["PTTL", &name(world)?]).await?;
    same!((left, holder(world).await?), (-1, Some("b".to_owned())));
    Ok(())
}

/// The job fails, is cancelled, or is deleted.
async fn a_name_is_free_however_its_job_ends(world: &World) -> Outcome {
    for way in ["finish", "fail", "cancel", "force", "delete", "poison"] {
        put(world, "a", Until::Done, OnDuplicate::Keep).await?;
        let broker = &world.broker;
        let first = world.read("a").await?;
        match way {
            "cancel" => drop(broker.cancel(&first, "stopped", false).await?),
            "delete" => drop(broker.delete(&first).await?),
            _ => {
                let run = world.take_one().await?;
                match way {
                    "finish" => drop(world.finish(&run, "42").await?),
                    "fail" => drop(world.fail(&run, FailureKind::Permanent).await?),
                    "force" => drop(broker.cancel(&first, "stopped", true).await?),
                    _ => {
                        let lost = ["HSET", &world.key("a"), "mw_lost", "4"];
                        world.raw::<()>(&lost).await?;
                        broker.isolate(&run).await?;
                        same!(world.lose_all().await?.ended, ["a"]);
                    }
                }
            }
        }
        same!((way, holder(world).await?), (way, None));
        same!(
            (
                way,
                put(world, "b", Until::Done, OnDuplicate::Refuse).await?
            ),
            (way, Stored)
        );
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// The job is not done yet.
async fn a_name_is_kept_through_retries_and_losses(world: &World) -> Outcome {
    put(world, "a", Until::Done, OnDuplicate::Keep).await?;
    let run = world.take_one().await?;
    world.fail(&run, FailureKind::Script).await?;
    let kept = Kept("a".parse()?);
    same!(put(world, "b", Until::Done, OnDuplicate::Keep).await?, kept);
    let run = world.take_one().await?;
    world.broker.release(&run).await?;
    same!(put(world, "b", Until::Done, OnDuplicate::Keep).await?, kept);
    world.take_one().await?;
    world.lose_all().await?;
    same!(put(world, "b", Until::Done, OnDuplicate::Keep).await?, kept);
    Ok(())
}

/// The replaced job is in no queue any more.
async fn a_replaced_job_says_by_whom(world: &World) -> Outcome {
    put(world, "a", Until::Done, OnDuplicate::Replace).await?;
    put(world, "b", Until::Done, OnDuplicate::Replace).await?;
    let error = world.read("a").await?.error;
    same!(error.as_deref(), Some("replaced by b"));
    same!(world.waiting().await?, ["b"]);
    let logged = world.events().await?;
    check!(logged.iter().any(|event| event[..2] == ["a", "error"]));
    Ok(())
}

/// The run ends as it would.
async fn a_replaced_run_does_not_free_the_name_of_its_successor(world: &World) -> Outcome {
    put(world, "a", Until::Done, OnDuplicate::Replace).await?;
    let run = world.take_one().await?;
    same!(
        put(world, "b", Until::Done, OnDuplicate::Replace).await?,
        Stored
    );
    world.finish(&run, "42").await?;
    same!(world.status("a").await?, "finished");
    same!(holder(world).await?.as_deref(), Some("b"));
    same!(
        put(world, "c", Until::Done, OnDuplicate::Keep).await?,
        Kept("b".parse()?)
    );
    Ok(())
}

/// The job runs when no new one has come for the pause.
async fn only_the_last_of_a_burst_runs(world: &World) -> Outcome {
    for id in ["a", "b", "c"] {
        let mut job = delayed(world, id, 1_000)?;
        job.unique = Some(Unique::debounce("burst"));
        world.put_jobs(&[job]).await?;
        world.pass(900);
        promote(world).await?;
    }
    check!(taken(world, 9).await?.is_empty());
    world.pass(100);
    promote(world).await?;
    same!(taken(world, 9).await?, ["c"]);
    let mut job = delayed(world, "d", 1_000)?;
    job.unique = Some(Unique::debounce("burst"));
    world.put_jobs(&[job]).await?;
    same!(world.status("c").await?, "started");
    Ok(())
}

/// The first job may have ended already.
async fn only_the_first_of_a_window_runs(world: &World) -> Outcome {
    for (id, should) in [("a", Stored), ("b", Kept("a".parse()?))] {
        let mut job = world.job(id)?;
        job.unique = Some(Unique::throttle("often", WINDOW));
        same!(world.broker.enqueue(&[job]).await?, [should]);
        for run in world.take(9).await? {
            world.finish(&run, "42").await?;
        }
    }
    check!(world.record("b").await?.is_empty());
    Ok(())
}

/// Types do not share names.
async fn each_type_has_names_of_its_own(world: &World) -> Outcome {
    put(world, "a", Until::Done, OnDuplicate::Refuse).await?;
    let mut other = job(world, "b", Until::Done, OnDuplicate::Refuse)?;
    other.route.script_type = "sal".parse()?;
    same!(world.broker.enqueue(&[other]).await?, [Stored]);
    let mut other = job(world, "c", Until::Done, OnDuplicate::Refuse)?;
    other.unique = other.unique.map(|unique| Unique {
        name: "another".to_owned(),
        ..unique
    });
    same!(world.broker.enqueue(&[other]).await?, [Stored]);
    Ok(())
}

/// The call is repeated after a broken connection.
async fn the_same_id_is_the_same_job(world: &World) -> Outcome {
    for policy in [OnDuplicate::Refuse, OnDuplicate::Replace] {
        put(world, "a", Until::Done, policy).await?;
        let before = world.all().await?;
        same!(put(world, "a", Until::Done, policy).await?, Exists);
        world.unchanged(&before).await?;
    }
    Ok(())
}

/// Nor does it replace the other job.
async fn what_is_not_stored_takes_no_name(world: &World) -> Outcome {
    put(world, "a", Until::Done, OnDuplicate::Keep).await?;
    let limit = ["HSET", &world.keys().config(), "limit", "1"];
    world.raw::<()>(&limit).await?;
    same!(
        put(world, "b", Until::Done, OnDuplicate::Replace).await?,
        Enqueued::Full
    );
    same!(holder(world).await?.as_deref(), Some("a"));
    same!(world.status("a").await?, "dispatched");
    Ok(())
}

/// The job does not get the name back if another job has it by now.
async fn an_ended_job_that_runs_again_has_its_name_again(world: &World) -> Outcome {
    put(world, "a", Until::Done, OnDuplicate::Keep).await?;
    let run = world.take_one().await?;
    world.finish(&run, "42").await?;
    world.broker.retry(&world.read("a").await?).await?;
    same!(
        put(world, "b", Until::Done, OnDuplicate::Keep).await?,
        Kept("a".parse()?)
    );
    let run = world.take_one().await?;
    world.finish(&run, "42").await?;
    same!(
        put(world, "b", Until::Done, OnDuplicate::Keep).await?,
        Stored
    );
    world.broker.retry(&world.read("a").await?).await?;
    same!(holder(world).await?.as_deref(), Some("b"));
    Ok(())
}

/// Foreign clients wrote its end, or deleted its record.
async fn a_holder_that_others_ended_holds_nothing(world: &World) -> Outcome {
    put(world, "a", Until::Done, OnDuplicate::Keep).await?;
    let end = ["HSET", &world.key("a"), "status", "finished"];
    world.raw::<()>(&end).await?;
    same!(
        put(world, "b", Until::Done, OnDuplicate::Keep).await?,
        Stored
    );
    world.raw::<()>(&["DEL", &world.key("b")]).await?;
    same!(
        put(world, "c", Until::Done, OnDuplicate::Refuse).await?,
        Stored
    );
    Ok(())
}

/// The first of them is accepted, or the last, depending on the policy.
async fn several_of_one_call(world: &World) -> Outcome {
    let jobs = |policy| -> Got<Vec<NewJob>> {
        let job = |id: &&str| job(world, id, Until::Done, policy);
        ["a", "b", "c"].iter().map(job).collect()
    };
    let said = world.broker.enqueue(&jobs(OnDuplicate::Keep)?).await?;
    same!(said, [Stored, Kept("a".parse()?), Kept("a".parse()?)]);
    world.raw::<()>(&["FLUSHDB"]).await?;
    let said = world.broker.enqueue(&jobs(OnDuplicate::Replace)?).await?;
    same!(said, [Stored, Stored, Stored]);
    same!(taken(world, 9).await?, ["c"]);
    same!(world.status("a").await?, "error");
    Ok(())
}
