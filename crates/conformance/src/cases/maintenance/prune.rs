//! prune: keeps ended jobs for a time, and up to a number.

use std::time::Duration;

use meshwork_broker::Retention;
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::world::START;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    what_ended_long_ago_goes,
    all_that_is_kept_of_it_goes,
    the_oldest_go_where_there_are_too_many,
    jobs_that_have_not_ended_stay,
    dead_letters_stay,
    a_job_set_going_again_by_hand_stays,
    a_dead_letter_that_ended_before_stays,
    what_is_no_job_is_passed_over,
    those_that_wait_for_it_learn_that_it_finished,
    a_clock_that_is_set_back_costs_nothing,
    two_at_once_forget_once,
];

async fn prune(world: &World, age_ms: u64, count: usize) -> Result<(usize, bool), Failure> {
    let age = Duration::from_millis(age_ms);
    Ok(world.broker.prune(Retention { age, count }).await?)
}

/// Ends jobs, one each second.
async fn ended(world: &World, ids: &[&str]) -> Outcome {
    for id in ids {
        let claimed = world.started(id).await?;
        world.finish(&claimed, "42").await?;
        world.pass(1_000);
    }
    Ok(())
}

async fn kept(world: &World) -> Result<Vec<String>, Failure> {
    world
        .raw(&["ZRANGE", &world.keys().ended(), "0", "-1"])
        .await
}

async fn exists(world: &World, id: &str) -> Result<bool, Failure> {
    world.raw(&["EXISTS", &world.key(id)]).await
}

/// The age is exact to the millisecond.
async fn what_ended_long_ago_goes(world: &World) -> Outcome {
    ended(world, &["j1", "j2"]).await?;
    world.at(START + 9_999);
    same!(prune(world, 10_000, 9).await?, (0, false));
    world.pass(1);
    same!(prune(world, 10_000, 9).await?, (1, false));
    same!(
        (exists(world, "j1").await?, exists(world, "j2").await?),
        (false, true)
    );
    same!(prune(world, 10_000, 9).await?, (0, false));
    same!(prune(world, u64::MAX, 9).await?, (0, false));
    Ok(())
}

/// Record, reply and log are deleted.
async fn all_that_is_kept_of_it_goes(world: &World) -> Outcome {
    let mut job = world.job("j1")?;
    job.reply = true;
    world.put_jobs(&[job]).await?;
    let claimed = world.take_one().await?;
    world
        .broker
        .log(&claimed, &[("stdout", b"1")], None)
        .await?;
    world.finish(&claimed, "42").await?;
    same!(prune(world, 0, 9).await?, (1, false));
    let figures = world.keys().queue_stats_key(&world.queue());
    let events = world.keys().events();
    let queues = world.keys().known_lists();
    let stays = ["DEL", &events, &figures, &queues];
    world.raw::<()>(&stays).await?;
    world.unchanged("").await
}

/// No other jobs are deleted.
async fn the_oldest_go_where_there_are_too_many(world: &World) -> Outcome {
    ended(world, &["j1", "j2", "j3", "j4"]).await?;
    same!(prune(world, 1_000_000, 4).await?, (0, false));
    same!(prune(world, 1_000_000, 2).await?, (2, false));
    same!(kept(world).await?, ["j3", "j4"]);
    same!(prune(world, 1_000_000, 0).await?, (2, false));
    same!(kept(world).await?.len(), 0);
    Ok(())
}

/// Jobs in any waiting state stay.
async fn jobs_that_have_not_ended_stay(world: &World) -> Outcome {
    let mut job = world.job("j2")?;
    job.depends_on = vec!["j1".parse()?];
    world
        .put_jobs(&[world.job("j1")?, job, world.job("j3")?])
        .await?;
    world.take_one().await?;
    let before = world.all().await?;
    world.pass(1_000_000);
    same!(prune(world, 0, 0).await?, (0, false));
    world.unchanged(&before).await
}

/// Dead letters stay until they are deleted by hand.
async fn dead_letters_stay(world: &World) -> Outcome {
    let claimed = world.started("j1").await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    let before = world.all().await?;
    world.pass(1_000_000);
    same!(prune(world, 0, 0).await?, (0, false));
    world.unchanged(&before).await
}

/// The job waits, runs, or has an unknown status.
async fn a_job_set_going_again_by_hand_stays(world: &World) -> Outcome {
    for status in ["dispatched", "started", "paused"] {
        ended(world, &[status]).await?;
        world
            .raw::<()>(&["HSET", &world.key(status), "status", status])
            .await?;
    }
    same!(prune(world, 0, 0).await?, (0, false));
    check!(kept(world).await?.is_empty());
    same!(exists(world, "paused").await?, true);
    // After its end it is kept as long as others.
    world.push("dispatched").await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    same!(kept(world).await?, ["dispatched"]);
    Ok(())
}

/// It was started again by hand, and failed.
async fn a_dead_letter_that_ended_before_stays(world: &World) -> Outcome {
    ended(world, &["j1"]).await?;
    world
        .raw::<()>(&["HSET", &world.key("j1"), "status", "dispatched"])
        .await?;
    world.push("j1").await?;
    let claimed = world.take_one().await?;
    world.fail(&claimed, FailureKind::Permanent).await?;
    world.pass(1_000_000);
    same!(prune(world, 0, 0).await?, (0, false));
    same!(world.read("j1").await?.dead.as_deref(), Some("permanent"));
    same!(prune(world, 0, 0).await?, (0, false));
    Ok(())
}

/// Its entry is removed.
async fn what_is_no_job_is_passed_over(world: &World) -> Outcome {
    world.raw::<()>(&["LPUSH", &world.key("list"), "x"]).await?;
    world.raw::<()>(&["SET", &world.key("string"), "x"]).await?;
    let before = world.all().await?;
    let kept = world.keys().ended();
    world
        .raw::<()>(&["ZADD", &kept, "1", "gone", "1", "list", "1", "string"])
        .await?;
    same!(prune(world, 0, 9).await?, (0, false));
    // Records may come back.
    let left: Vec<String> = world.raw(&["ZRANGE", &kept, "0", "-1"]).await?;
    same!(left, ["list", "string"]);
    let events = world.keys().events();
    world.raw::<()>(&["DEL", &kept, &events]).await?;
    world.unchanged(&before).await
}

/// The record of the job is deleted before they are notified.
async fn those_that_wait_for_it_learn_that_it_finished(world: &World) -> Outcome {
    let many: Result<Vec<_>, Failure> = (0..150)
        .map(|n| {
            let mut job = world.job(&format!("d{n}"))?;
            job.depends_on = vec!["j1".parse()?];
            Ok(job)
        })
        .collect();
    world.put(&["j1"]).await?;
    world.put_jobs(&many?).await?;
    let claimed = world.take_one().await?;
    world.finish(&claimed, "42").await?;
    same!(world.waiting().await?.len(), 100);
    same!(prune(world, 0, 0).await?, (1, false));
    check!(!world.broker.resolve_dependents().await?);
    same!(world.waiting().await?.len(), 150);
    Ok(())
}

/// A job that ended in the clock's future counts as new.
async fn a_clock_that_is_set_back_costs_nothing(world: &World) -> Outcome {
    world.at(START + 1_000_000_000);
    ended(world, &["j1"]).await?;
    world.at(START);
    ended(world, &["j2"]).await?;
    same!(prune(world, 10_000, 9).await?, (0, false));
    same!(prune(world, 10_000, 1).await?, (1, false));
    same!(kept(world).await?, ["j1"]);
    Ok(())
}

/// Two workers may run the same maintenance.
async fn two_at_once_forget_once(world: &World) -> Outcome {
    ended(world, &["j1", "j2", "j3"]).await?;
    let (one, two) = tokio::try_join!(prune(world, 0, 0), prune(world, 0, 0))?;
    same!(one.0 + two.0, 3);
    Ok(())
}
