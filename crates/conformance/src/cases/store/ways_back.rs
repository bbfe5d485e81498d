//! The ways of a job back into its queue, each in two steps: a record can be forged between them.

use std::time::Duration;

use meshwork_broker::{Retried, RunNow};
use meshwork_model::name::JobId;
use meshwork_model::outcome::{Failure as Wrong, FailureKind};

use crate::cases::harness::world::Got;
use crate::cases::of_contexts::contexts::{job_of, new};
use crate::cases::{Outcome, World, same};

/// Pause before a retry, in milliseconds.
const PAUSE: u64 = 5_000;

/// The ways of a job back into its queue.
pub(super) const WAYS: [&str; 9] = [
    "fail",
    "release",
    "reclaim",
    "promote",
    "run_now",
    "complete",
    "resolve_dependents",
    "retry",
    "check_orphans",
];

/// Returns a job that is to take a way back, before the step that leads there.
pub(super) async fn before(world: &World, way: &str, number: u32) -> Got<String> {
    let mut job = new(world, number)?;
    (job.retries, job.reply) = (1, true);
    let key = job.id.to_string();
    if matches!(way, "complete" | "resolve_dependents") {
        job.depends_on = vec![JobId::foreign(job_of(world, number + 1)?)];
        world.put_jobs(&[new(world, number + 1)?, job]).await?;
        return Ok(key);
    }
    world.put_jobs(&[job]).await?;
    match way {
        "promote" | "run_now" => {
            let claimed = world.take_one().await?;
            let boom = Wrong::new(FailureKind::Script, "boom");
            let pause = Duration::from_millis(PAUSE);
            world.broker.fail(&claimed, &boom, b"", b"", pause).await?;
        }
        "retry" => {
            for _ in 0..2 {
                let claimed = world.take_one().await?;
                world.fail(&claimed, FailureKind::Script).await?;
            }
        }
        "check_orphans" => {
            world.raw::<()>(&["RPOP", &world.queue()]).await?;
        }
        _ => {}
    }
    Ok(key)
}

/// Takes the way back, after the record was changed by `forge`.
pub(super) async fn go(world: &World, way: &str, id: &str, forge: &[(&str, &str)]) -> Outcome {
    let claimed = match way {
        "fail" | "release" | "reclaim" | "complete" | "resolve_dependents" => {
            Some(world.take_one().await?)
        }
        _ => None,
    };
    set(world, id, forge).await?;
    match (way, claimed) {
        ("fail", Some(claimed)) => drop(world.fail(&claimed, FailureKind::Script).await?),
        ("release", Some(claimed)) => drop(world.broker.release(&claimed).await?),
        ("complete", Some(first)) => drop(world.finish(&first, "1").await?),
        // As a plain runner ends a job.
        ("resolve_dependents", Some(first)) => {
            let settle = world.keys().unresolved();
            set(world, &first.job.id, &[("status", "finished")]).await?;
            world.raw::<()>(&["RPUSH", &settle, &first.job.id]).await?;
            world.broker.resolve_dependents().await?;
        }
        ("reclaim", _) => drop(world.lose_all().await?),
        ("promote", _) => {
            world.pass(PAUSE);
            world.broker.promote().await?;
        }
        ("run_now", _) => {
            let job = world.read(id).await?;
            same!(world.broker.run_now(&job).await?, RunNow::Queued);
        }
        ("retry", _) => {
            let job = world.read(id).await?;
            same!(world.broker.retry(&job).await?, Retried::Queued);
        }
        _ => {
            add(world, "WATCHED", "", "0", id).await?;
            for _ in 0..2 {
                world.broker.check_orphans().await?;
                world.pass(60_000);
            }
        }
    }
    Ok(())
}

pub(super) async fn set(world: &World, id: &str, fields: &[(&str, &str)]) -> Outcome {
    let key = world.key(id);
    let mut words = vec!["HSET", &key];
    words.extend(fields.iter().flat_map(|(name, value)| [*name, *value]));
    world.raw(&words).await
}

pub(super) async fn push(world: &World, name: &str, end: &str, item: &str) -> Outcome {
    let key = format!("{}{end}", world.named(name)?);
    world.raw(&["RPUSH", &key, item]).await
}

pub(super) async fn add(
    world: &World,
    name: &str,
    end: &str,
    score: &str,
    member: &str,
) -> Outcome {
    let key = format!("{}{end}", world.named(name)?);
    world.raw(&["ZADD", &key, score, member]).await
}
