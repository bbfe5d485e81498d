//! submit: a running job gets children, each once, however often the job runs.

use meshwork_broker::{AddedChild, Claimed, Enqueued, Error};
use meshwork_model::job::NewChild;
use meshwork_model::name::ScriptType;
use meshwork_model::outcome::FailureKind;
use meshwork_model::sandbox::Profile;

use crate::cases::harness::world::{LEASE_MS, START, WORKER};
use crate::cases::{Failure, Outcome, World, cases, check, same};

use Enqueued::{Exists, Full, Stored};

cases![
    a_child_is_stored_and_queued,
    the_same_call_again_changes_nothing,
    a_later_run_finds_the_children_of_the_first,
    a_replayed_dead_letter_finds_them_too,
    a_child_that_was_forgotten_is_not_added_again,
    a_child_that_differs_is_refused,
    another_job_of_that_id_is_left,
    a_run_that_lost_its_job_submits_nothing,
    a_job_that_has_ended_submits_nothing,
    a_job_that_is_to_stop_submits_nothing,
    a_job_that_is_gone_submits_nothing,
    a_full_queue_takes_none_and_its_number_stays_free,
    numbers_may_come_in_any_order,
    a_child_may_wait_for_its_time,
    a_child_of_a_child_is_deeper,
    writes_nothing_if_the_queue_is_no_list,
];

/// Returns a child of the cases' type, as a run requests it.
fn child(script: &str) -> NewChild {
    NewChild::new(script)
}

async fn submit(
    world: &World,
    claimed: &Claimed,
    number: u32,
    child: &NewChild,
) -> Result<AddedChild, Failure> {
    let script_type: ScriptType = "osis".parse()?;
    let job = child
        .job((&claimed.job, &script_type, Profile::Open), number, None)
        .map_err(|error| Failure::new(error.to_string()))?;
    let digest = child.digest(&script_type);
    let broker = world.broker.clone().acting_as(WORKER);
    Ok(broker.add_child(claimed, number, &job, &digest).await?)
}

/// Checks that a call is refused, and changes nothing.
async fn refused(world: &World, claimed: &Claimed, number: u32, with: AddedChild) -> Outcome {
    let before = world.all().await?;
    world.pass(1);
    same!(submit(world, claimed, number, &child("x")).await?, with);
    world.unchanged(&before).await
}

/// The child is an ordinary job that names its parent, and the parent has the number of its children.
async fn a_child_is_stored_and_queued(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    let before = world.all().await?;
    same!(
        submit(world, &claimed, 1, &child("x")).await?,
        AddedChild::Enqueued(Stored)
    );
    same!(world.waiting().await?, ["p.1"]);
    let job = world.read("p.1").await?;
    same!(job.script, b"x");
    same!(job.status, "dispatched");
    same!(job.parent.as_deref(), Some("p"));
    same!((job.depth, job.children), (1, 0));
    same!(job.created_at, meshwork_model::time::iso(START));
    let parent = world.read("p").await?;
    same!((parent.children, parent.calls, parent.parent), (1, 1, None));
    check!(!parent.other.keys().any(|name| name.starts_with("mw_child")));
    let logged = world.events().await?;
    let last = logged
        .last()
        .map(|event| event.clone().map(|word| word.replace("p.1", "CHILD")));
    same!(
        last.map(|[id, what, who, _]| [id, what, who].join(" ")),
        Some(format!("CHILD enqueue {WORKER}"))
    );
    check!(world.unchanged(&before).await.is_err());
    Ok(())
}

/// The call is repeated, as after a broken connection.
async fn the_same_call_again_changes_nothing(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    submit(world, &claimed, 1, &child("x")).await?;
    refused(world, &claimed, 1, AddedChild::Enqueued(Exists)).await
}

/// The states of the children do not matter.
async fn a_later_run_finds_the_children_of_the_first(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    for number in 1..=3 {
        submit(world, &claimed, number, &child("x")).await?;
    }
    let first = world.take_one().await?;
    world.finish(&first, "42").await?;
    world.lose_all().await?;
    let again = world.take_one().await?;
    same!(again.job.id, "p");
    for number in 1..=3 {
        refused(world, &again, number, AddedChild::Enqueued(Exists)).await?;
    }
    same!(
        submit(world, &again, 4, &child("x")).await?,
        AddedChild::Enqueued(Stored)
    );
    same!(world.waiting().await?, ["p.2", "p.3", "p.4"]);
    same!(world.read("p").await?.children, 4);
    Ok(())
}

/// The same holds for a retry by hand.
async fn a_replayed_dead_letter_finds_them_too(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    submit(world, &claimed, 1, &child("x")).await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    let one = world.take_one().await?;
    world.finish(&one, "42").await?;
    world.broker.retry(&world.read("p").await?).await?;
    let again = world.take_one().await?;
    refused(world, &again, 1, AddedChild::Enqueued(Exists)).await?;
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// The parent's record still counts the child.
async fn a_child_that_was_forgotten_is_not_added_again(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    submit(world, &claimed, 1, &child("x")).await?;
    world.broker.delete(&world.read("p.1").await?).await?;
    world.lose_all().await?;
    let again = world.take_one().await?;
    refused(world, &again, 1, AddedChild::Enqueued(Exists)).await
}

/// The answer has the digest of the earlier child, which stays unchanged.
async fn a_child_that_differs_is_refused(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    let before = child("y");
    submit(world, &claimed, 1, &before).await?;
    let digest = before.digest(&"osis".parse()?).to_string();
    refused(world, &claimed, 1, AddedChild::Differs(digest)).await
}

/// The job never belonged to this parent, and a later run does not take it for a child either.
async fn another_job_of_that_id_is_left(world: &World) -> Outcome {
    world.put(&["p.1"]).await?;
    let other = world.take_one().await?;
    world.finish(&other, "42").await?;
    let claimed = world.started("p").await?;
    refused(world, &claimed, 1, AddedChild::Taken).await?;
    refused(world, &claimed, 1, AddedChild::Taken).await
}

/// The call fails between the two runs, and during the second.
async fn a_run_that_lost_its_job_submits_nothing(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    submit(world, &claimed, 1, &child("x")).await?;
    world.pass(LEASE_MS);
    world.lose_all().await?;
    refused(world, &claimed, 2, AddedChild::Stale).await?;
    refused(world, &claimed, 1, AddedChild::Stale).await?;
    let again = world.take_one().await?;
    same!(again.job.id, "p");
    refused(world, &claimed, 2, AddedChild::Stale).await
}

/// The kind of the end does not matter; a finished record keeps its token.
async fn a_job_that_has_ended_submits_nothing(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    world.finish(&claimed, "42").await?;
    refused(world, &claimed, 1, AddedChild::Stale).await?;
    let claimed = world.started("q").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    refused(world, &claimed, 1, AddedChild::Stale).await?;
    let claimed = world.started("r").await?;
    world.broker.cancel(&claimed.job, "stopped", true).await?;
    refused(world, &claimed, 1, AddedChild::Stale).await
}

/// So a client that cancels the job can go on with its children: no new ones come.
async fn a_job_that_is_to_stop_submits_nothing(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    submit(world, &claimed, 1, &child("x")).await?;
    world.broker.cancel(&claimed.job, "stopped", false).await?;
    refused(world, &claimed, 2, AddedChild::Stopping).await?;
    refused(world, &claimed, 1, AddedChild::Stopping).await
}

/// The job is not created again.
async fn a_job_that_is_gone_submits_nothing(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    world.raw::<()>(&["DEL", &world.key("p")]).await?;
    refused(world, &claimed, 1, AddedChild::Stale).await
}

/// The next run requests the child again.
async fn a_full_queue_takes_none_and_its_number_stays_free(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    let limit = |most| {
        [
            "HSET".to_owned(),
            world.keys().config(),
            "limit".to_owned(),
            most,
        ]
    };
    let set = async |most: &str| {
        let words = limit(most.to_owned());
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        world.raw::<()>(&words).await
    };
    set("0").await?;
    refused(world, &claimed, 1, AddedChild::Enqueued(Full)).await?;
    set("1").await?;
    same!(
        submit(world, &claimed, 1, &child("x")).await?,
        AddedChild::Enqueued(Stored)
    );
    refused(world, &claimed, 2, AddedChild::Enqueued(Full)).await?;
    refused(world, &claimed, 1, AddedChild::Enqueued(Exists)).await?;
    same!(world.waiting().await?, ["p.1"]);
    Ok(())
}

/// The record has the highest number, in any order of calls.
async fn numbers_may_come_in_any_order(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    for (number, children) in [(2, 1), (1, 2)] {
        same!(
            submit(world, &claimed, number, &child("x")).await?,
            AddedChild::Enqueued(Stored)
        );
        let parent = world.read("p").await?;
        same!((parent.children, parent.calls), (children, 2));
    }
    same!(world.waiting().await?, ["p.2", "p.1"]);
    Ok(())
}

/// A child may have a delay, like any job.
async fn a_child_may_wait_for_its_time(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    let late = NewChild {
        delay_ms: Some(5_000),
        key: Some("k".to_owned()),
        ..child("x")
    };
    same!(
        submit(world, &claimed, 1, &late).await?,
        AddedChild::Enqueued(Stored)
    );
    check!(world.waiting().await?.is_empty());
    let job = world.read("p.1").await?;
    same!(job.run_at_ms, Some(world.now() + 5_000));
    same!(
        (job.key.as_deref(), job.parent.as_deref()),
        (Some("k"), Some("p"))
    );
    same!(world.read("p").await?.children, 1);
    Ok(())
}

/// The record has the depth, so it does not depend on the worker.
async fn a_child_of_a_child_is_deeper(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    submit(world, &claimed, 1, &child("x")).await?;
    let one = world.take_one().await?;
    submit(world, &one, 1, &child("x")).await?;
    let job = world.read("p.1.1").await?;
    same!((job.parent.as_deref(), job.depth), (Some("p.1"), 2));
    Ok(())
}

/// If the id cannot be pushed, the child is not stored, and its number stays free.
async fn writes_nothing_if_the_queue_is_no_list(world: &World) -> Outcome {
    let claimed = world.started("p").await?;
    world.raw::<()>(&["DEL", &world.queue()]).await?;
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    let before = world.all().await?;
    let failed = submit(world, &claimed, 1, &child("x")).await;
    check!(failed.is_err());
    world.unchanged(&before).await?;
    let digest = child("x").digest(&"osis".parse()?);
    let job = child("x").job((&claimed.job, &"osis".parse()?, Profile::Open), 1, None);
    let job = job.map_err(|error| Failure::new(error.to_string()))?;
    let failed = world.broker.add_child(&claimed, 1, &job, &digest).await;
    check!(matches!(
        failed,
        Err(Error::WrongType {
            verb: "add_child",
            key,
        }) if key == world.queue()
    ));
    Ok(())
}
