//! Parts of spread queues: which jobs a part takes while keys move.

use meshwork_broker::{Enqueued, SpreadKeys};
use meshwork_model::job::{NewJob, OnDuplicate, Unique, Until, When};
use meshwork_model::outcome::FailureKind;
use meshwork_model::spread::{SpreadName, SpreadTicket};

use crate::cases::harness::world::Got;
use crate::cases::{Outcome, World, cases, check, same};

use Enqueued::{Elsewhere, Exists, Stale, Stored};

cases![
    a_part_takes_jobs_of_its_layout,
    an_earlier_layout_is_refused,
    a_moving_key_stays_while_it_has_unfinished_jobs,
    a_key_stays_whatever_the_state_of_its_jobs,
    a_unique_name_keeps_its_key,
    the_same_call_again_changes_nothing,
    keys_without_jobs_are_forgotten,
    many_ended_jobs_are_removed_in_steps,
    all_keys_with_jobs_are_listed,
    a_list_adopts_the_layout,
    each_queue_has_keys_of_its_own,
];

fn name() -> Got<SpreadName> {
    Ok("osis".parse()?)
}

/// Returns a job that a layout of this generation placed.
fn placed(world: &World, id: &str, key: Option<&str>, generation: u64) -> Got<NewJob> {
    let mut job = world.job(id)?;
    job.spread = Some(SpreadTicket {
        name: name()?,
        generation,
        key: key.map(str::to_owned),
        if_present: false,
    });
    Ok(job)
}

/// Returns a job of a key that moves from this part.
fn moving(world: &World, id: &str, key: &str, generation: u64) -> Got<NewJob> {
    let mut job = placed(world, id, Some(key), generation)?;
    if let Some(ticket) = &mut job.spread {
        ticket.if_present = true;
    }
    Ok(job)
}

async fn put(world: &World, job: NewJob) -> Got<Enqueued> {
    let mut answers = world.broker.enqueue(&[job]).await?;
    let answer = answers.pop();
    answer.ok_or_else(|| crate::cases::Failure::new("no answer"))
}

async fn cancel(world: &World, id: &str) -> Outcome {
    let job = world.read(id).await?;
    world.broker.cancel(&job, "cancelled", true).await?;
    Ok(())
}

/// Returns the keys that have unfinished jobs, over all pages.
async fn listed(world: &World, generation: u64) -> Got<Vec<String>> {
    let (mut all, mut skip) = (Vec::new(), Some(0));
    while let Some(from) = skip {
        match world.broker.spread_keys(&name()?, generation, from).await? {
            SpreadKeys::Page(keys, next) => {
                all.extend(keys);
                skip = next;
            }
            SpreadKeys::Stale(newer) => return Ok(vec![format!("stale {newer}")]),
        }
    }
    all.sort();
    Ok(all)
}

async fn a_part_takes_jobs_of_its_layout(world: &World) -> Outcome {
    same!(put(world, placed(world, "a", None, 1)?).await?, Stored);
    same!(put(world, placed(world, "b", Some("k"), 1)?).await?, Stored);
    same!(world.waiting().await?, ["a", "b"]);
    same!(listed(world, 1).await?, ["k"]);
    world.put(&["plain"]).await?;
    same!(world.waiting().await?, ["a", "b", "plain"]);
    Ok(())
}

async fn an_earlier_layout_is_refused(world: &World) -> Outcome {
    for key in [None, Some("k")] {
        same!(put(world, placed(world, "a", key, 3)?).await?, Stored);
        let before = world.all().await?;
        same!(put(world, placed(world, "b", key, 2)?).await?, Stale(3));
        same!(put(world, moving(world, "b", "k", 2)?).await?, Stale(3));
        world.unchanged(&before).await?;
        same!(put(world, placed(world, "c", key, 3)?).await?, Stored);
        same!(put(world, placed(world, "d", key, 4)?).await?, Stored);
        same!(put(world, placed(world, "e", key, 3)?).await?, Stale(4));
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

async fn a_moving_key_stays_while_it_has_unfinished_jobs(world: &World) -> Outcome {
    for id in ["a", "b"] {
        same!(put(world, placed(world, id, Some("k"), 1)?).await?, Stored);
    }
    same!(put(world, moving(world, "c", "k", 2)?).await?, Stored);
    same!(
        put(world, moving(world, "d", "other", 2)?).await?,
        Elsewhere
    );
    check!(world.record("d").await?.is_empty());
    // The first job may end last.
    let jobs = world.take(3).await?;
    for job in jobs.iter().skip(1) {
        world.finish(job, "1").await?;
    }
    same!(put(world, moving(world, "e", "k", 2)?).await?, Stored);
    world.finish(&jobs[0], "1").await?;
    same!(listed(world, 2).await?, ["k"]);
    let last = world.take_one().await?;
    world.finish(&last, "1").await?;
    same!(put(world, moving(world, "f", "k", 2)?).await?, Elsewhere);
    same!(listed(world, 2).await?, [""; 0]);
    Ok(())
}

async fn a_key_stays_whatever_the_state_of_its_jobs(world: &World) -> Outcome {
    for state in [
        "delayed",
        "running",
        "retrying",
        "waiting",
        "failed",
        "cancelled",
        "deleted",
    ] {
        let mut job = placed(world, "a", Some("k"), 1)?;
        if state == "delayed" {
            job.when = Some(When::In(60_000));
        }
        if state == "waiting" {
            world.put(&["first"]).await?;
            job.depends_on = vec!["first".parse()?];
        }
        job.retries = u32::from(state == "retrying");
        world.put_jobs(&[job]).await?;
        match state {
            "running" => drop(world.take_one().await?),
            "retrying" | "failed" => {
                let run = world.take_one().await?;
                world.fail(&run, FailureKind::Script).await?;
            }
            "cancelled" => cancel(world, "a").await?,
            "deleted" => {
                cancel(world, "a").await?;
                world.broker.delete(&world.read("a").await?).await?;
            }
            _ => {}
        }
        let stays = !matches!(state, "failed" | "cancelled" | "deleted");
        let should = if stays { Stored } else { Elsewhere };
        let answer = put(world, moving(world, "b", "k", 2)?).await?;
        same!((state, answer), (state, should));
        world.raw::<()>(&["FLUSHDB"]).await?;
    }
    Ok(())
}

/// A later job with the name would be stored elsewhere beside its window.
async fn a_unique_name_keeps_its_key(world: &World) -> Outcome {
    let throttled = |mut job: NewJob| {
        job.unique = Some(Unique::throttle("n", 600_000));
        job
    };
    world
        .put_jobs(&[throttled(placed(world, "a", Some("n"), 1)?)])
        .await?;
    let run = world.take_one().await?;
    world.finish(&run, "1").await?;
    let again = throttled(moving(world, "b", "n", 2)?);
    same!(put(world, again).await?, Enqueued::Kept("a".parse()?));
    let named = |mut job: NewJob| {
        job.unique = Some(Unique {
            name: "o".to_owned(),
            until: Until::Done,
            policy: OnDuplicate::Keep,
        });
        job
    };
    world
        .put_jobs(&[named(placed(world, "d", Some("one"), 2)?)])
        .await?;
    let other_key = named(moving(world, "e", "two", 2)?);
    same!(put(world, other_key).await?, Enqueued::Kept("d".parse()?));
    let mut without = moving(world, "c", "m", 2)?;
    without.unique = Some(Unique::throttle("m", 600_000));
    same!(put(world, without).await?, Elsewhere);
    Ok(())
}

async fn the_same_call_again_changes_nothing(world: &World) -> Outcome {
    same!(put(world, placed(world, "a", Some("k"), 1)?).await?, Stored);
    same!(put(world, placed(world, "b", Some("k"), 2)?).await?, Stored);
    let before = world.all().await?;
    same!(put(world, placed(world, "a", Some("k"), 1)?).await?, Exists);
    same!(put(world, moving(world, "a", "k", 1)?).await?, Exists);
    world.unchanged(&before).await?;
    Ok(())
}

/// Each new job checks two keys, so the number of keys is bounded by that of unfinished jobs.
async fn keys_without_jobs_are_forgotten(world: &World) -> Outcome {
    // The oldest keys have jobs, and must not be the only ones that are checked.
    for id in ["late-1", "late-2"] {
        let mut job = placed(world, id, Some(id), 1)?;
        job.when = Some(When::In(3_600_000));
        world.put_jobs(&[job]).await?;
        world.pass(1);
    }
    for n in 0..40 {
        let id = format!("j{n}");
        let job = placed(world, &id, Some(&format!("k{n}")), 1)?;
        same!(put(world, job).await?, Stored);
        let run = world.take_one().await?;
        world.finish(&run, "1").await?;
        world.pass(1);
    }
    let index = format!("{}osis", world.named("SPREAD")?);
    let keys: Vec<String> = world.raw(&["ZRANGE", &index, "0", "-1"]).await?;
    check!(keys.len() <= 6);
    for n in 0..30 {
        let set: u64 = world.raw(&["EXISTS", &format!("{index} k{n}")]).await?;
        same!((n, set), (n, 0));
    }
    Ok(())
}

async fn many_ended_jobs_are_removed_in_steps(world: &World) -> Outcome {
    let ids: Vec<_> = (0..150).map(|n| format!("j{n:03}")).collect();
    let jobs: Got<Vec<_>> = ids
        .iter()
        .map(|id| placed(world, id, Some("k"), 1))
        .collect();
    world.put_jobs(&jobs?).await?;
    for id in &ids {
        cancel(world, id).await?;
    }
    // More than one call removes: the key has jobs for the part until then.
    same!(put(world, moving(world, "a", "k", 2)?).await?, Stored);
    cancel(world, "a").await?;
    same!(put(world, moving(world, "b", "k", 2)?).await?, Elsewhere);
    Ok(())
}

async fn all_keys_with_jobs_are_listed(world: &World) -> Outcome {
    let mut open = Vec::new();
    for n in 0..450 {
        let (id, key) = (format!("j{n}"), format!("k{n:03}"));
        world
            .put_jobs(&[placed(world, &id, Some(&key), 1)?])
            .await?;
        match n % 3 {
            0 => cancel(world, &id).await?,
            _ => open.push(key),
        }
    }
    same!(listed(world, 1).await?, open);
    Ok(())
}

async fn a_list_adopts_the_layout(world: &World) -> Outcome {
    same!(listed(world, 2).await?, [""; 0]);
    same!(put(world, placed(world, "a", None, 1)?).await?, Stale(2));
    same!(put(world, placed(world, "a", Some("k"), 2)?).await?, Stored);
    same!(listed(world, 1).await?, ["stale 2"]);
    same!(listed(world, 2).await?, ["k"]);
    Ok(())
}

async fn each_queue_has_keys_of_its_own(world: &World) -> Outcome {
    same!(put(world, placed(world, "a", Some("k"), 5)?).await?, Stored);
    let mut other = moving(world, "b", "k", 1)?;
    if let Some(ticket) = &mut other.spread {
        ticket.name = "osis:group:io".parse()?;
    }
    same!(put(world, other.clone()).await?, Elsewhere);
    if let Some(ticket) = &mut other.spread {
        ticket.if_present = false;
    }
    same!(put(world, other).await?, Stored);
    same!(listed(world, 5).await?, ["k"]);
    Ok(())
}
