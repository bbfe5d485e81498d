//! enqueue: stores and queues jobs in one step, once.

use meshwork_broker::{Enqueued, Error, MAX_ENQUEUE};

use crate::cases::harness::world::ids;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    stores_and_queues,
    takes_each_job_to_its_queue,
    leaves_a_job_that_waits,
    leaves_a_job_that_runs,
    leaves_a_job_that_ended,
    counts_an_id_given_twice_once,
    adds_what_is_missing,
    takes_a_thousand_in_one_call,
    refuses_more_than_a_thousand,
    writes_nothing_if_one_job_is_invalid,
    takes_no_job,
    carries_large_inputs_whole,
    writes_nothing_if_the_queue_is_no_list,
];

/// A job is stored and its id pushed.
async fn stores_and_queues(world: &World) -> Outcome {
    let stored = world.broker.enqueue(&[world.job("j1")?]).await?;
    same!(stored, [Enqueued::Stored]);
    same!(world.waiting().await?, ["j1"]);
    same!(world.status("j1").await?, "dispatched");
    same!(world.read("j1").await?.script, b"j1");
    Ok(())
}

/// The id goes to the most specific queue that the job names, and to no other.
async fn takes_each_job_to_its_queue(world: &World) -> Outcome {
    let mut jobs = [world.job("all")?, world.job("group")?, world.job("one")?];
    jobs[1].route.group = Some("io".parse()?);
    jobs[2].route.group = Some("io".parse()?);
    jobs[2].route.instance = Some("3".parse()?);
    world.put_jobs(&jobs).await?;
    for (queue, id) in [
        ("osis", "all"),
        ("osis:group:io", "group"),
        ("osis:group:io:inst:3", "one"),
    ] {
        same!(world.list(&world.queue_of(queue)).await?, [id]);
    }
    Ok(())
}

/// A second call with the same id, as after a broken connection, changes nothing.
async fn leaves_a_job_that_waits(world: &World) -> Outcome {
    world.put(&["j1"]).await?;
    again(world).await
}

/// A running job would otherwise run twice at once.
async fn leaves_a_job_that_runs(world: &World) -> Outcome {
    world.started("j1").await?;
    again(world).await
}

/// An ended job would lose its result, and run twice.
async fn leaves_a_job_that_ended(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.finish(&claimed, "42").await?;
    again(world).await
}

async fn again(world: &World) -> Outcome {
    let before = world.all().await?;
    world.pass(1);
    let mut other = world.job("j1")?;
    other.script = "another".to_owned();
    same!(world.broker.enqueue(&[other]).await?, [Enqueued::Exists]);
    world.unchanged(&before).await
}

/// The same id twice in one call is one job, the first.
async fn counts_an_id_given_twice_once(world: &World) -> Outcome {
    let (first, mut second) = (world.job("j1")?, world.job("j1")?);
    second.script = "another".to_owned();
    let stored = world.broker.enqueue(&[first, second]).await?;
    same!(stored, [Enqueued::Stored, Enqueued::Exists]);
    same!(world.waiting().await?, ["j1"]);
    same!(world.read("j1").await?.script, b"j1");
    Ok(())
}

/// A call repeated after part of it took effect stores the rest, and answers in order.
async fn adds_what_is_missing(world: &World) -> Outcome {
    world.put(&["j2", "j4"]).await?;
    let jobs = [
        world.job("j1")?,
        world.job("j2")?,
        world.job("j3")?,
        world.job("j4")?,
    ];
    let stored = world.broker.enqueue(&jobs).await?;
    use Enqueued::{Exists, Stored};
    same!(stored, [Stored, Exists, Stored, Exists]);
    same!(world.waiting().await?, ["j2", "j4", "j1", "j3"]);
    Ok(())
}

/// 1,000 jobs fit into one call and wait in their order.
async fn takes_a_thousand_in_one_call(world: &World) -> Outcome {
    let names: Vec<_> = (0..MAX_ENQUEUE).map(|n| format!("j{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    world.put(&names).await?;
    same!(world.waiting().await?, names);
    let jobs = world.take(MAX_ENQUEUE).await?;
    same!(ids(&jobs), names);
    Ok(())
}

/// One more job makes the call fail as a whole, since a bound keeps calls from blocking the server.
async fn refuses_more_than_a_thousand(world: &World) -> Outcome {
    let jobs: Result<Vec<_>, _> = (0..=MAX_ENQUEUE)
        .map(|n| world.job(&format!("j{n}")))
        .collect();
    let refused = world.broker.enqueue(&jobs?).await;
    check!(matches!(
        refused,
        Err(Error::TooMany {
            verb: "enqueue",
            most: MAX_ENQUEUE,
            given: 1001
        })
    ));
    world.unchanged("").await
}

/// An invalid job makes the call fail before it writes anything.
async fn writes_nothing_if_one_job_is_invalid(world: &World) -> Outcome {
    let mut empty = world.job("j2")?;
    empty.script = " ".to_owned();
    let refused = world.broker.enqueue(&[world.job("j1")?, empty]).await;
    check!(matches!(refused, Err(Error::Invalid(_))));
    world.unchanged("").await
}

/// A call without jobs is no error.
async fn takes_no_job(world: &World) -> Outcome {
    same!(world.broker.enqueue(&[]).await?, []);
    world.unchanged("").await
}

/// Inputs with any bytes arrive whole, even if they are too large for one call together.
async fn carries_large_inputs_whole(world: &World) -> Outcome {
    let every_byte: Vec<u8> = (0..=255).cycle().take(3 * 1024 * 1024).collect();
    let mut jobs = [world.job("j1")?, world.job("j2")?, world.job("j3")?];
    for job in &mut jobs {
        job.input = Some(every_byte.clone());
    }
    world.put_jobs(&jobs).await?;
    for claimed in world.take(3).await? {
        check!(claimed.job.input.as_ref() == Some(&every_byte));
    }
    Ok(())
}

/// If the id cannot be pushed the job is not stored either.
async fn writes_nothing_if_the_queue_is_no_list(world: &World) -> Outcome {
    world.raw::<()>(&["SET", &world.queue(), "x"]).await?;
    let before = world.all().await?;
    let refused = world.broker.enqueue(&[world.job("j1")?]).await;
    check!(matches!(refused, Err(Error::WrongType { key, .. }) if key == world.queue()));
    world.unchanged(&before).await
}
