//! pages: reads of queued, running, delayed and ended jobs by pages, and of the place of a job. They change nothing.

use meshwork_broker::{JobSet, ListEntry, MAX_ITEMS, SetEntry};
use meshwork_model::job::NewJob;
use meshwork_model::name::JobId;
use meshwork_model::outcome::FailureKind;
use meshwork_model::route::Priority;

use crate::cases::dependencies::prerequisites::after;
use crate::cases::harness::options::{delayed, open};
use crate::cases::harness::world::{Got, START};
use crate::cases::{Outcome, World, cases, check, same};

cases![
    delayed_jobs_come_by_due_time,
    a_position_whose_job_is_gone_is_still_one,
    renewed_jobs_are_on_a_later_page,
    ended_jobs_come_the_latest_first,
    no_page_exceeds_a_thousand,
    a_queue_is_read_in_the_order_of_claims,
    a_claimed_position_begins_again,
    a_job_knows_its_place,
    a_place_is_searched_in_a_part_only,
    what_a_job_waits_for,
    they_change_nothing,
];

/// Reads all pages of a set, with the number of pages.
async fn all(world: &World, set: JobSet, latest_first: bool, count: usize) -> Got<Vec<String>> {
    let (mut ids, mut at) = (Vec::new(), None);
    loop {
        let page = world
            .broker
            .set_page(set, at.as_ref(), latest_first, count)
            .await?;
        ids.extend(page.entries.iter().map(|entry| entry.id.clone()));
        at = page.entries.last().cloned().or(at);
        if page.last {
            return Ok(ids);
        }
    }
}

/// Jobs of one time are ordered by id.
async fn delayed_jobs_come_by_due_time(world: &World) -> Outcome {
    let jobs = [
        ("b", 1_000),
        ("d", 2_000),
        ("a", 1_000),
        ("c", 1_000),
        ("e", 500),
    ];
    let jobs: Got<Vec<_>> = jobs
        .iter()
        .map(|(id, ms)| delayed(world, id, *ms))
        .collect();
    world.put_jobs(&jobs?).await?;
    for count in [1, 2, 3, 10] {
        same!(
            all(world, JobSet::Delayed, false, count).await?,
            ["e", "a", "b", "c", "d"]
        );
        same!(
            all(world, JobSet::Delayed, true, count).await?,
            ["d", "c", "b", "a", "e"]
        );
    }
    let page = world
        .broker
        .set_page(JobSet::Delayed, None, false, 1)
        .await?;
    same!(page.entries[0].at_ms, START + 500);
    check!(!page.last);
    Ok(())
}

async fn a_position_whose_job_is_gone_is_still_one(world: &World) -> Outcome {
    let ids = ["a", "b", "c", "d", "e", "f", "g"];
    let jobs: Got<Vec<_>> = ids.iter().map(|id| delayed(world, id, 1_000)).collect();
    world.put_jobs(&jobs?).await?;
    let at = |ms: u64, id: &str| SetEntry {
        at_ms: START + ms,
        id: id.to_owned(),
    };
    for gone in ["d", "a", "g"] {
        world
            .raw::<()>(&["ZREM", &world.keys().delayed(), gone])
            .await?;
    }
    for (after, ascending, descending) in [
        (at(1_000, "d"), "e f", "c b"),
        (at(1_000, "a"), "b c", ""),
        (at(1_000, "g"), "", "f e"),
        (at(999, "z"), "b c", ""),
        (at(1_001, "a"), "", "f e"),
        // The job is due at another time by now.
        (at(5, "c"), "b c", ""),
    ] {
        for (latest_first, expected) in [(false, ascending), (true, descending)] {
            let page = world
                .broker
                .set_page(JobSet::Delayed, Some(&after), latest_first, 2)
                .await?;
            let ids: Vec<_> = page.entries.iter().map(|entry| entry.id.as_str()).collect();
            same!(ids.join(" "), expected);
        }
    }
    Ok(())
}

async fn renewed_jobs_are_on_a_later_page(world: &World) -> Outcome {
    world.put(&["a", "b", "c"]).await?;
    let held = world.take(3).await?;
    let first = world
        .broker
        .set_page(JobSet::Running, None, false, 1)
        .await?;
    same!(first.entries[0].id, "a");
    world.pass(1_000);
    world
        .renew(crate::cases::harness::world::WORKER, &held[..1])
        .await?;
    let next = world
        .broker
        .set_page(JobSet::Running, first.entries.last(), false, 10)
        .await?;
    let ids: Vec<_> = next.entries.iter().map(|entry| entry.id.as_str()).collect();
    same!(ids, ["b", "c", "a"]);
    check!(next.last);
    Ok(())
}

/// Dead letters are in a set of their own.
async fn ended_jobs_come_the_latest_first(world: &World) -> Outcome {
    world.put(&["a", "b", "c"]).await?;
    let held = world.take(3).await?;
    world.finish(&held[1], "1").await?;
    world.pass(5);
    world.finish(&held[0], "1").await?;
    world.fail(&held[2], FailureKind::Permanent).await?;
    same!(all(world, JobSet::Ended, true, 1).await?, ["a", "b"]);
    same!(all(world, JobSet::Dead, true, 1).await?, ["c"]);
    check!(all(world, JobSet::Running, false, 1).await?.is_empty());
    Ok(())
}

async fn no_page_exceeds_a_thousand(world: &World) -> Outcome {
    let broker = &world.broker;
    check!(
        broker
            .set_page(JobSet::Ended, None, true, MAX_ITEMS + 1)
            .await
            .is_err()
    );
    check!(
        broker
            .list_page(&world.queue(), None, MAX_ITEMS + 1)
            .await
            .is_err()
    );
    check!(
        broker
            .set_page(JobSet::Ended, None, true, 0)
            .await?
            .entries
            .is_empty()
    );
    Ok(())
}

async fn listed(world: &World, after: Option<&ListEntry>, count: usize) -> Got<Vec<ListEntry>> {
    Ok(world.broker.list_page(&world.queue(), after, count).await?)
}

fn shown(page: &[ListEntry]) -> String {
    let entries = page
        .iter()
        .map(|entry| format!("{}{}", entry.id, entry.index));
    entries.collect::<Vec<_>>().join(" ")
}

async fn a_queue_is_read_in_the_order_of_claims(world: &World) -> Outcome {
    world.put(&["a", "b", "c", "d", "e"]).await?;
    let first = listed(world, None, 2).await?;
    same!(shown(&first), "a0 b1");
    // A claim and a new job between two pages hide nothing.
    same!(world.take(1).await?.len(), 1);
    world.put(&["f"]).await?;
    let next = listed(world, first.last(), 2).await?;
    same!(shown(&next), "c1 d2");
    same!(shown(&listed(world, next.last(), 10).await?), "e3 f4");
    Ok(())
}

/// Whatever came before a claimed job was claimed too.
async fn a_claimed_position_begins_again(world: &World) -> Outcome {
    world.put(&["a", "b", "c"]).await?;
    let first = listed(world, None, 2).await?;
    same!(world.take(2).await?.len(), 2);
    same!(shown(&listed(world, first.last(), 2).await?), "c0");
    check!(listed(world, None, 0).await?.is_empty());
    Ok(())
}

fn of_priority(world: &World, id: &str, priority: Priority) -> Got<NewJob> {
    let mut job = world.job(id)?;
    job.route.priority = priority;
    Ok(job)
}

async fn a_job_knows_its_place(world: &World) -> Outcome {
    world.put(&["a", "b"]).await?;
    let more = [
        of_priority(world, "h", Priority::High)?,
        of_priority(world, "l", Priority::Low)?,
    ];
    world.put_jobs(&more).await?;
    for (id, ahead, higher) in [("h", 0, 0), ("a", 0, 1), ("b", 1, 1), ("l", 0, 3)] {
        let list = world.broker.queue_of(&world.read(id).await?);
        let place = world.broker.position(&list, &id.parse()?).await?;
        let place = place.map(|place| (place.ahead, place.higher, place.exact));
        same!(place, Some((ahead, higher, true)));
    }
    world.take(1).await?;
    let place = world.broker.position(&world.queue(), &"a".parse()?).await?;
    same!(place, None);
    Ok(())
}

/// The list is as long as its searched part, and then longer.
async fn a_place_is_searched_in_a_part_only(world: &World) -> Outcome {
    let most = meshwork_broker::MAX_POSITION as usize;
    let queue = world.queue();
    world.raw::<()>(&["LPUSH", &queue, "first"]).await?;
    let fill: Vec<String> = (1..most).map(|n| format!("x{n}")).collect();
    for chunk in fill.chunks(1_000) {
        let words: Vec<_> = ["LPUSH", &queue]
            .into_iter()
            .chain(chunk.iter().map(String::as_str))
            .collect();
        world.raw::<()>(&words).await?;
    }
    let place = async |id: &str| -> Got<Option<(u64, bool)>> {
        let place = world.broker.position(&queue, &id.parse()?).await?;
        Ok(place.map(|place| (place.ahead, place.exact)))
    };
    same!(place("first").await?, Some((0, true)));
    same!(
        place(&format!("x{}", most - 1)).await?,
        Some((most as u64 - 1, true))
    );
    same!(place("absent").await?, None);
    world.raw::<()>(&["LPUSH", &queue, "last"]).await?;
    same!(place("last").await?, Some((most as u64, false)));
    Ok(())
}

async fn what_a_job_waits_for(world: &World) -> Outcome {
    world.put(&["a", "b", "c"]).await?;
    world
        .put_jobs(&[after(world, "z", &["a", "b", "c"])?])
        .await?;
    let held = world.take(2).await?;
    world.finish(&held[0], "1").await?;
    let job = world.read("z").await?;
    let status = |word: &str| Some(word.to_owned());
    let expected = [
        ("b".to_owned(), status("started")),
        ("c".to_owned(), status("dispatched")),
    ];
    same!(open(world, &job).await?, expected);
    world.raw::<()>(&["DEL", &world.key("c")]).await?;
    same!(open(world, &job).await?[1], ("c".to_owned(), None));
    check!(open(world, &world.read("a").await?).await?.is_empty());
    Ok(())
}

async fn they_change_nothing(world: &World) -> Outcome {
    world.started("a").await?;
    world.put(&["b"]).await?;
    world.put_jobs(&[delayed(world, "c", 1_000)?]).await?;
    let before = world.all().await?;
    for set in [
        JobSet::Running,
        JobSet::Delayed,
        JobSet::Ended,
        JobSet::Dead,
    ] {
        all(world, set, false, 1).await?;
    }
    listed(world, None, 10).await?;
    world
        .broker
        .position(&world.queue(), &JobId::foreign("b".to_owned()))
        .await?;
    world.broker.workers_of_type("osis").await?;
    world.unchanged(&before).await
}
