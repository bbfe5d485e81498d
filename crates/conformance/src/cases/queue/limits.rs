//! Limits of queues: a full queue takes no more jobs.

use meshwork_broker::Enqueued;
use meshwork_model::outcome::FailureKind;

use crate::cases::dependencies::prerequisites::{after, run};
use crate::cases::{Outcome, World, cases, check, same};

use Enqueued::{Exists, Full, Stored};

cases![
    the_default_holds_for_every_queue,
    a_queues_own_limit_comes_first,
    one_call_fills_up_to_the_limit,
    a_full_queue_writes_nothing,
    an_id_that_is_there_is_there,
    there_is_room_again,
    what_comes_back_is_never_refused,
    a_job_that_would_wait_is_refused_too,
    what_is_no_number_is_no_limit,
];

async fn limit(world: &World, queue: Option<&str>, limit: &str) -> Outcome {
    let field = queue.map_or_else(|| "limit".to_owned(), |queue| format!("limit:{queue}"));
    let set = ["HSET", &world.keys().config(), &field, limit];
    world.raw(&set).await
}

async fn put(
    world: &World,
    id: &str,
    script_type: &str,
) -> Result<Enqueued, crate::cases::Failure> {
    let mut job = world.job(id)?;
    job.route.script_type = script_type.parse()?;
    let mut said = world.broker.enqueue(&[job]).await?;
    said.pop()
        .ok_or_else(|| crate::cases::Failure::new("no answer"))
}

/// The limit counts for each queue separately.
async fn the_default_holds_for_every_queue(world: &World) -> Outcome {
    limit(world, None, "2").await?;
    for script_type in ["osis", "sal"] {
        let mut said = Vec::new();
        for n in 0..3 {
            said.push(put(world, &format!("{script_type}{n}"), script_type).await?);
        }
        same!(said, [Stored, Stored, Full]);
    }
    Ok(())
}

/// A queue's own limit may be higher or lower, and needs no default.
async fn a_queues_own_limit_comes_first(world: &World) -> Outcome {
    limit(world, Some(&world.queue()), "1").await?;
    same!(put(world, "a", "osis").await?, Stored);
    same!(put(world, "b", "osis").await?, Full);
    same!(put(world, "c", "sal").await?, Stored);
    limit(world, None, "1").await?;
    limit(world, Some(&world.queue()), "2").await?;
    same!(put(world, "d", "sal").await?, Full);
    same!(put(world, "e", "osis").await?, Stored);
    limit(world, Some(&world.queue()), "0").await?;
    same!(put(world, "f", "osis").await?, Full);
    Ok(())
}

/// The answer has a result for each job.
async fn one_call_fills_up_to_the_limit(world: &World) -> Outcome {
    limit(world, None, "3").await?;
    world.put(&["a"]).await?;
    let mut other = world.job("d")?;
    other.route.script_type = "sal".parse()?;
    let jobs = [world.job("b")?, world.job("c")?, world.job("x")?, other];
    let said = world.broker.enqueue(&jobs).await?;
    same!(said, [Stored, Stored, Full, Stored]);
    same!(world.waiting().await?, ["a", "b", "c"]);
    limit(world, Some(&world.queue_of("v")), "1").await?;
    let mut jobs = [world.job("w")?, world.job("y")?, world.job("z")?];
    for job in &mut jobs[1..] {
        job.route.script_type = "v".parse()?;
    }
    let said = world.broker.enqueue(&jobs).await?;
    same!(said, [Full, Stored, Full]);
    Ok(())
}

/// The job may be submitted again later.
async fn a_full_queue_writes_nothing(world: &World) -> Outcome {
    limit(world, None, "1").await?;
    world.put(&["a"]).await?;
    let before = world.all().await?;
    world.pass(1);
    same!(put(world, "b", "osis").await?, Full);
    world.unchanged(&before).await
}

/// A call that is repeated after a broken connection does not report the job as refused.
async fn an_id_that_is_there_is_there(world: &World) -> Outcome {
    limit(world, None, "1").await?;
    world.put(&["a"]).await?;
    same!(put(world, "a", "osis").await?, Exists);
    Ok(())
}

/// A claim makes room.
async fn there_is_room_again(world: &World) -> Outcome {
    limit(world, None, "1").await?;
    world.put(&["a"]).await?;
    same!(put(world, "b", "osis").await?, Full);
    world.take_one().await?;
    same!(put(world, "b", "osis").await?, Stored);
    Ok(())
}

/// The job was accepted before.
async fn what_comes_back_is_never_refused(world: &World) -> Outcome {
    limit(world, None, "1").await?;
    let mut job = world.job("a")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world.put(&["b"]).await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(world.waiting().await?, ["b", "a"]);
    Ok(())
}

/// The job counts for its queue, even if it is not in there yet.
async fn a_job_that_would_wait_is_refused_too(world: &World) -> Outcome {
    world.put(&["first", "failed"]).await?;
    let held = world.take_one().await?;
    run(world, "failed", false).await?;
    limit(world, None, "0").await?;
    let jobs = [
        after(world, "a", &["first"])?,
        after(world, "b", &["failed"])?,
    ];
    same!(world.broker.enqueue(&jobs).await?, [Full, Full]);
    limit(world, None, "1").await?;
    same!(world.broker.enqueue(&jobs[..1]).await?, [Stored]);
    world.finish(&held, "42").await?;
    same!(world.waiting().await?, ["a"]);
    Ok(())
}

/// A typing error does not block a queue.
async fn what_is_no_number_is_no_limit(world: &World) -> Outcome {
    for (n, text) in ["", "many"].into_iter().enumerate() {
        limit(world, None, text).await?;
        same!(put(world, &format!("j{n}"), "osis").await?, Stored);
    }
    check!(world.waiting().await?.len() == 2);
    Ok(())
}
