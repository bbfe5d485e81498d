//! Delayed jobs: where and how long they wait, and their other properties.

use std::time::Duration;

use meshwork_broker::{Cancelled, Deleted};
use meshwork_model::job::When;
use meshwork_model::keys::hero::LegacyList;
use meshwork_model::name::ScriptType;

use crate::cases::dependencies::prerequisites::{after, run, waits};
use crate::cases::harness::options::{
    LOOK_MS, delayed, keyed, members, promote, put_keyed, set, taken,
};
use crate::cases::harness::world::START;
use crate::cases::{Outcome, World, cases, check, same};

cases![
    it_waits_for_its_time,
    a_time_that_is_over_is_now,
    whoever_looks_after_them_is_woken,
    it_waits_for_others_and_for_its_time,
    its_time_may_come_before_theirs,
    its_key_may_be_at_its_limit_then,
    whatever_is_due_first_is_told,
    a_clock_set_back_puts_it_off_again,
    a_stopped_job_never_comes,
    a_deleted_job_never_comes,
    an_old_list_does_not_get_it_early,
    nothing_of_it_is_written_where_it_cannot_wait,
    all_priorities_come_in_order,
];

/// The time is exact to the millisecond; the job is ready from then on.
async fn it_waits_for_its_time(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5_000)?]).await?;
    check!(world.waiting().await?.is_empty());
    same!(world.status("a").await?, "dispatched");
    same!(
        world.field("a", "mw_run_at").await?,
        Some((START + 5_000).to_string())
    );
    same!(promote(world).await?, (0, Some(5_000)));
    world.pass(4_999);
    same!(promote(world).await?, (0, Some(1)));
    check!(taken(world, 1).await?.is_empty());
    world.pass(1);
    same!(promote(world).await?, (1, None));
    same!(
        world.field("a", "updated_at").await?.as_deref(),
        Some("2023-11-14T22:13:25.123Z")
    );
    same!(taken(world, 1).await?, ["a"]);
    Ok(())
}

/// The current time counts as past.
async fn a_time_that_is_over_is_now(world: &World) -> Outcome {
    for (id, at) in [("a", START - 1), ("b", START)] {
        let mut job = world.job(id)?;
        job.when = Some(When::At(at));
        world.put_jobs(&[job]).await?;
    }
    same!(world.waiting().await?, ["a", "b"]);
    let mut job = world.job("c")?;
    job.when = Some(When::At(START + 1));
    world.put_jobs(&[job]).await?;
    same!(promote(world).await?, (0, Some(1)));
    Ok(())
}

/// The wake-up comes once, if the new time is before the earliest known one.
async fn whoever_looks_after_them_is_woken(world: &World) -> Outcome {
    let due = world.keys().due();
    for (id, ms, woken) in [
        ("a", 5_000, 1),
        ("b", 9_000, 0),
        ("c", 1_000, 1),
        ("d", 1_001, 0),
    ] {
        world.raw::<()>(&["DEL", &due]).await?;
        world.put_jobs(&[delayed(world, id, ms)?]).await?;
        same!((id, world.list(&due).await?.len()), (id, woken));
    }
    world.put_jobs(&[delayed(world, "e", 900)?]).await?;
    world.put_jobs(&[delayed(world, "f", 800)?]).await?;
    same!(world.list(&due).await?.len(), 1);
    Ok(())
}

/// The later of the two counts.
async fn it_waits_for_others_and_for_its_time(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = after(world, "a", &["first"])?;
    job.when = Some(When::In(5_000));
    world.put_jobs(&[job]).await?;
    check!(waits(world, "a").await?);
    same!(promote(world).await?, (0, None));
    run(world, "first", true).await?;
    check!(world.waiting().await?.is_empty());
    same!(promote(world).await?, (0, Some(5_000)));
    world.pass(5_000);
    same!(promote(world).await?, (1, None));
    same!(world.waiting().await?, ["a"]);
    Ok(())
}

/// Then no promotion is needed.
async fn its_time_may_come_before_theirs(world: &World) -> Outcome {
    world.put(&["first"]).await?;
    let mut job = after(world, "a", &["first"])?;
    job.when = Some(When::In(5_000));
    world.put_jobs(&[job]).await?;
    world.pass(5_000);
    same!(promote(world).await?, (0, None));
    run(world, "first", true).await?;
    same!(world.waiting().await?, ["a"]);
    Ok(())
}

/// The job is set aside behind those that were submitted before it.
async fn its_key_may_be_at_its_limit_then(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    let mut late = keyed(world, "k", &["late"])?;
    late[0].when = Some(When::In(5_000));
    world.put_jobs(&late).await?;
    put_keyed(world, "k", &["a", "b"]).await?;
    world.pass(5_000);
    promote(world).await?;
    same!(world.waiting().await?, ["a"]);
    same!(members(world, "BACKLOG", Some("k")).await?, ["late", "b"]);
    let mut order = Vec::new();
    for _ in 0..3 {
        order.extend(taken(world, 1).await?);
    }
    same!(order, ["a", "late", "b"]);
    Ok(())
}

/// The earliest time is that of a delay, or of the next check of jobs that are set aside.
async fn whatever_is_due_first_is_told(world: &World) -> Outcome {
    set(world, "fair=1").await?;
    world.put_jobs(&[delayed(world, "a", 9_000)?]).await?;
    put_keyed(world, "k", &["b", "c"]).await?;
    same!(promote(world).await?, (0, Some(LOOK_MS)));
    world.put_jobs(&[delayed(world, "d", 3_000)?]).await?;
    same!(promote(world).await?, (0, Some(3_000)));
    Ok(())
}

/// The due time counts, not the time that the job has waited.
async fn a_clock_set_back_puts_it_off_again(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5_000)?]).await?;
    let early = ["ZADD", &world.keys().delayed(), "1", "a"];
    world.raw::<()>(&early).await?;
    same!(promote(world).await?, (1, Some(5_000)));
    check!(world.waiting().await?.is_empty());
    Ok(())
}

/// No delay is left.
async fn a_stopped_job_never_comes(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5_000)?]).await?;
    let said = world
        .broker
        .cancel(&world.read("a").await?, "stopped", false)
        .await?;
    same!(said, Cancelled::Cancelled);
    same!(promote(world).await?, (0, None));
    same!(world.status("a").await?, "error");
    Ok(())
}

/// No delay is left either.
async fn a_deleted_job_never_comes(world: &World) -> Outcome {
    world.put_jobs(&[delayed(world, "a", 5_000)?]).await?;
    let said = world.broker.delete(&world.read("a").await?).await?;
    same!(said, Deleted::Deleted);
    same!(promote(world).await?, (0, None));
    check!(world.record("a").await?.is_empty());
    Ok(())
}

/// An old worker ignores the time of a job, so its old list gets the job at its time.
async fn an_old_list_does_not_get_it_early(world: &World) -> Outcome {
    let osis = ScriptType::foreign("osis".to_owned());
    let old = world.keys().legacy_type_queue(&osis);
    let list = LegacyList::foreign(old.clone());
    let age = Duration::from_secs(30);
    world.broker.start_migration(&osis, list, age).await?;
    world.put(&["first"]).await?;
    let mut job = after(world, "a", &["first"])?;
    job.when = Some(When::In(5_000));
    world.put_jobs(&[job, delayed(world, "b", 5_000)?]).await?;
    run(world, "first", true).await?;
    check!(world.list(&old).await?.is_empty());
    world.pass(5_000);
    same!(promote(world).await?, (2, None));
    let mut waiting = world.waiting().await?;
    waiting.sort();
    same!(waiting, ["a", "b"]);
    Ok(())
}

/// Jobs before it in the same call are queued.
async fn nothing_of_it_is_written_where_it_cannot_wait(world: &World) -> Outcome {
    let lists = [("DELAYED", "x"), ("SEQ", "x"), ("BACKLOG_INDEX", "x")];
    for (n, (name, text)) in lists.into_iter().enumerate() {
        world.raw::<()>(&["SET", &world.named(name)?, text]).await?;
        let (one, two) = (format!("a{n}"), format!("b{n}"));
        let mut job = world.job(&two)?;
        match name {
            "DELAYED" => job.when = Some(When::In(5)),
            _ => job.key = Some("k".to_owned()),
        }
        let said = world.broker.enqueue(&[world.job(&one)?, job]).await;
        same!((name, said.is_err()), (name, true));
        check!(world.record(&two).await?.is_empty());
        same!(taken(world, 1).await?, [one.as_str()]);
        world.raw::<()>(&["DEL", &world.named(name)?]).await?;
    }
    Ok(())
}

/// Jobs of the same time come in the order of their ids, each into the list of its priority.
async fn all_priorities_come_in_order(world: &World) -> Outcome {
    let mut high = delayed(world, "c", 5)?;
    high.route.priority = meshwork_model::route::Priority::High;
    let jobs = [delayed(world, "a", 5)?, high, delayed(world, "b", 4)?];
    world.put_jobs(&jobs).await?;
    world.pass(5);
    same!(promote(world).await?, (3, None));
    same!(world.waiting().await?, ["b", "a"]);
    let list = format!("{}:prio:0", world.queue());
    same!(world.list(&list).await?, ["c"]);
    Ok(())
}
