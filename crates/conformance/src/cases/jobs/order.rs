//! Order of jobs: oldest first within a queue, the most specific queue first.

use meshwork_model::name::Group;
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::{Listen, Priority};

use crate::cases::harness::world::{WORKER, ids};
use crate::cases::{Outcome, World, cases, same};

cases![
    oldest_first,
    oldest_first_in_one_call,
    most_specific_queue_first,
    most_specific_queue_first_in_one_call,
    a_full_queue_hides_none_after_it,
    level_by_level_and_within_each_the_most_specific,
    a_retry_goes_to_the_end,
    what_is_handed_back_is_next,
    what_was_lost_is_next,
];

/// Jobs run first in, first out, so that none starves.
async fn oldest_first(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    for id in ["j1", "j2", "j3"] {
        same!(world.take_one().await?.job.id, id);
    }
    Ok(())
}

/// The same order holds for several jobs in one claim.
async fn oldest_first_in_one_call(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    world.put(&["j3"]).await?;
    let jobs = world.take(3).await?;
    same!(ids(&jobs), ["j1", "j2", "j3"]);
    Ok(())
}

/// Pushes `t` to the queue of the type, then `g` to that of the group, then `i` to that of the instance. Returns the
/// queues in the order of a worker.
async fn three_levels(world: &World) -> Result<Vec<String>, crate::cases::Failure> {
    let mut jobs = [world.job("t")?, world.job("g")?, world.job("i")?];
    jobs[1].route.group = Some(Group::default());
    jobs[2].route.instance = Some("7".parse()?);
    world.put_jobs(&jobs).await?;
    let listen = Listen {
        script_type: "osis".parse()?,
        group: Group::default(),
        instance: Some("7".parse()?),
        routes: None,
    };
    Ok(listen.queues(world.keys()).concat())
}

/// The order is instance, group, type, whichever was pushed first.
async fn most_specific_queue_first(world: &World) -> Outcome {
    let queues = three_levels(world).await?;
    for id in ["i", "g", "t"] {
        let taken = world.claim(WORKER, &queues, 1).await?;
        same!(ids(&taken.jobs), [id]);
    }
    Ok(())
}

/// The same order holds for several jobs in one claim.
async fn most_specific_queue_first_in_one_call(world: &World) -> Outcome {
    let queues = three_levels(world).await?;
    let taken = world.claim(WORKER, &queues, 3).await?;
    same!(ids(&taken.jobs), ["i", "g", "t"]);
    let from: Vec<_> = taken.jobs.iter().map(|job| job.queue.clone()).collect();
    let of = |queue: &str| world.queue_of(queue);
    let group = "osis:group:default";
    same!(
        from,
        [of(&format!("{group}:inst:7")), of(group), of("osis")]
    );
    Ok(())
}

/// Later queues fill the slots that the first ones leave free.
async fn a_full_queue_hides_none_after_it(world: &World) -> Outcome {
    let queues = three_levels(world).await?;
    world.put(&["t2", "t3"]).await?;
    let taken = world.claim(WORKER, &queues, 4).await?;
    same!(ids(&taken.jobs), ["i", "g", "t", "t2"]);
    Ok(())
}

/// A failed job comes after the others.
async fn a_retry_goes_to_the_end(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    world.put(&["j2", "j3"]).await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Script).await?;
    same!(world.waiting().await?, ["j2", "j3", "j1"]);
    Ok(())
}

/// A released job is the next one again.
async fn what_is_handed_back_is_next(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    let claimed = world.take_one().await?;
    world.broker.release(&claimed).await?;
    same!(world.waiting().await?, ["j1", "j2", "j3"]);
    Ok(())
}

/// A lost job is the next one again.
async fn what_was_lost_is_next(world: &World) -> Outcome {
    world.put(&["j1", "j2", "j3"]).await?;
    world.take_one().await?;
    world.lose_all().await?;
    same!(world.waiting().await?, ["j1", "j2", "j3"]);
    Ok(())
}

/// The order is that of Hero's protocol: high, normal and low, each for instance, group and type. A list without
/// `:prio` comes before the same list with `:prio:1`, to which only others push.
async fn level_by_level_and_within_each_the_most_specific(world: &World) -> Outcome {
    let mut expected = Vec::new();
    for priority in Priority::ALL {
        for place in ["i", "g", "t"] {
            let id = format!("{place}-{priority}");
            let mut job = world.job(&id)?;
            job.route.priority = priority;
            job.route.group = (place == "g").then(Group::default);
            job.route.instance = (place == "i").then(|| "7".parse()).transpose()?;
            expected.push(id);
            world.put_jobs(&[job.clone()]).await?;
            if priority == Priority::Normal {
                let id = format!("{place}-1");
                let list = format!("{}:prio:1", job.route.queue(world.keys()));
                world.put_foreign(&id, &[("script", "1")]).await?;
                let from = world.queue();
                let moved = ["LMOVE", &from, &list, "LEFT", "LEFT"];
                world.raw::<()>(&moved).await?;
                expected.push(id);
            }
        }
    }
    let listen = Listen {
        script_type: "osis".parse()?,
        group: Group::default(),
        instance: Some("7".parse()?),
        routes: None,
    };
    let taken = world
        .claim(WORKER, &listen.queues(world.keys()).concat(), 20)
        .await?;
    same!(ids(&taken.jobs), expected);
    Ok(())
}
