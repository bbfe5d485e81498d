//! tick: each slot of a schedule is decided once, by any worker and in any number of calls.

use std::time::Duration;

use meshwork_broker::FiredSlots;
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::policy::{CatchUp, Overlap};

use crate::cases::harness::world::START;
use crate::cases::schedules::put_schedule::{SLOT, every, named, put, read};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    a_slot_runs_at_its_moment_and_once,
    many_may_look_after_it,
    a_position_that_went_back_runs_nothing_again,
    a_position_that_is_gone_runs_nothing_of_the_past,
    a_clock_that_went_back_runs_nothing_again,
    the_latest_missed_slot_runs,
    missed_slots_are_skipped,
    all_missed_slots_run_in_order,
    after_its_end_it_is_never_due,
    a_full_queue_is_tried_again,
    what_is_undecided_holds_up_what_follows,
    what_a_queue_never_takes_is_given_up,
    a_queue_that_is_no_list_holds_up_nobody,
    what_cannot_be_read_holds_up_nobody,
    a_name_without_a_schedule_is_dropped,
    takes_a_bounded_number,
    reads_a_bounded_number_of_bytes,
    nothing_to_do_is_no_error,
];

pub(crate) const FIRST: &str = "s.20231114T221330Z";
pub(crate) const SECOND: &str = "s.20231114T221340Z";

pub(crate) async fn tick(world: &World) -> Result<(usize, usize, usize), Failure> {
    let FiredSlots {
        due,
        stored,
        skipped,
        ..
    } = world.broker.fire_schedules().await?;
    Ok((due, stored, skipped))
}

/// Stores a schedule with an interval of ten seconds and a policy, and runs its first slot.
pub(crate) async fn after_one(world: &World, overlap: Overlap) -> Result<Schedule, Failure> {
    let mut schedule = every(world, "@every 10s")?;
    schedule.overlap = overlap;
    put(world, &schedule).await?;
    world.at(SLOT);
    same!(tick(world).await?, (1, 1, 0));
    Ok(schedule)
}

/// The slot runs at its time, exact to the millisecond, and never again.
async fn a_slot_runs_at_its_moment_and_once(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let none = world.broker.fire_schedules().await?;
    same!(
        (none.due, none.next),
        (0, Some(Duration::from_millis(9_877)))
    );
    world.at(SLOT - 1);
    same!(tick(world).await?, (0, 0, 0));
    world.at(SLOT);
    let due = world.broker.fire_schedules().await?;
    same!(
        (due.due, due.stored, due.next),
        (1, 1, Some(Duration::from_secs(10)))
    );
    same!(world.waiting().await?, [FIRST]);
    let job = world.read(FIRST).await?;
    same!(
        (job.script.as_slice(), job.created_at.as_str()),
        (&b"any"[..], "2023-11-14T22:13:30.000Z")
    );
    same!(job.env_vars["MESHWORK_SLOT"], "2023-11-14T22:13:30.000Z");
    let before = world.all().await?;
    same!(tick(world).await?, (0, 0, 0));
    world.unchanged(&before).await?;
    let there = read(world).await?;
    same!((there.runs, there.position), (1, Some(SLOT)));
    same!(there.last, Some(FIRST.parse()?));
    same!(there.next, Some(SLOT + 10_000));
    Ok(())
}

/// All workers call at once.
async fn many_may_look_after_it(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    (schedule.overlap, schedule.catch_up) = (Overlap::Allow, CatchUp::All(100));
    put(world, &schedule).await?;
    for n in 0..10 {
        world.at(SLOT + n * 10_000);
        let all = (0..8).map(|_| world.broker.fire_schedules());
        let ticked = futures_util::future::try_join_all(all).await?;
        same!(ticked.iter().map(|ticked| ticked.stored).sum::<usize>(), 1);
    }
    same!(world.waiting().await?.len(), 10);
    same!(read(world).await?.runs, 10);
    Ok(())
}

/// The id of the job exists.
async fn a_position_that_went_back_runs_nothing_again(world: &World) -> Outcome {
    after_one(world, Overlap::Allow).await?;
    let key = world.keys().schedule(&"s".parse()?);
    let start = START.to_string();
    world.raw::<()>(&["HSET", &key, "position", &start]).await?;
    world
        .raw::<()>(&["ZADD", &world.keys().schedules(), &start, "s"])
        .await?;
    same!(tick(world).await?, (1, 0, 0));
    same!(world.waiting().await?, [FIRST]);
    let there = read(world).await?;
    same!((there.runs, there.position), (1, Some(SLOT)));
    Ok(())
}

/// The schedule goes on from now.
async fn a_position_that_is_gone_runs_nothing_of_the_past(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let key = world.keys().schedule(&"s".parse()?);
    world.raw::<()>(&["HDEL", &key, "position"]).await?;
    world.at(SLOT + 1);
    same!(tick(world).await?, (1, 0, 0));
    world.at(SLOT + 10_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.waiting().await?, [SECOND]);
    Ok(())
}

/// Its slots come when the clock reaches their times again.
async fn a_clock_that_went_back_runs_nothing_again(world: &World) -> Outcome {
    after_one(world, Overlap::Allow).await?;
    for ms in [START, SLOT - 1, SLOT, SLOT + 9_999] {
        world.at(ms);
        same!(tick(world).await?, (0, 0, 0));
    }
    world.at(SLOT + 10_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.waiting().await?, [FIRST, SECOND]);
    Ok(())
}

/// The delay does not matter.
async fn the_latest_missed_slot_runs(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    world.at(SLOT + 86_400_000 + 1);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.waiting().await?, ["s.20231115T221330Z"]);
    same!(read(world).await?.position, Some(SLOT + 86_400_000));
    Ok(())
}

/// The next slot that is not missed runs.
async fn missed_slots_are_skipped(world: &World) -> Outcome {
    let mut schedule = every(world, "@hourly")?;
    schedule.catch_up = CatchUp::Skip;
    put(world, &schedule).await?;
    let hour = START / 3_600_000 * 3_600_000;
    world.at(hour + 2 * 3_600_000 + 60_001);
    same!(tick(world).await?, (1, 0, 0));
    world.at(hour + 3 * 3_600_000 + 60_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.waiting().await?, ["s.20231115T010000Z"]);
    Ok(())
}

/// Several calls run them if there are many.
async fn all_missed_slots_run_in_order(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    (schedule.overlap, schedule.catch_up) = (Overlap::Allow, CatchUp::All(150));
    put(world, &schedule).await?;
    world.at(SLOT + 1_999_999);
    let first = world.broker.fire_schedules().await?;
    same!((first.stored, first.next), (100, Some(Duration::ZERO)));
    let second = world.broker.fire_schedules().await?;
    same!(
        (second.stored, second.next),
        (50, Some(Duration::from_millis(1)))
    );
    let waiting = world.waiting().await?;
    let expected = (50..200).map(|n| schedule.job_at(SLOT + n * 10_000).id.to_string());
    same!(waiting, expected.collect::<Vec<_>>());
    Ok(())
}

/// Its last slot runs.
async fn after_its_end_it_is_never_due(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    schedule.timing.end = Some(SLOT);
    put(world, &schedule).await?;
    world.at(SLOT);
    let last = world.broker.fire_schedules().await?;
    same!((last.stored, last.next), (1, None));
    world.pass(1_000_000_000);
    let never = world.broker.fire_schedules().await?;
    same!((never.due, never.next), (0, None));
    same!(read(world).await?.next, None);
    same!(world.broker.promote().await?.next, None);
    Ok(())
}

/// Its slot is not lost.
async fn a_full_queue_is_tried_again(world: &World) -> Outcome {
    put(world, &every(world, "@hourly")?).await?;
    put(world, &named(world, "t", "@hourly")?).await?;
    world.broker.set_max_length(None, Some(1)).await?;
    let hour = START.div_ceil(3_600_000) * 3_600_000;
    world.at(hour);
    let full = world.broker.fire_schedules().await?;
    same!(
        (full.stored, full.troubles),
        (1, vec![("t".parse()?, "its queue is full".to_owned())])
    );
    world.pass(4_999);
    same!(tick(world).await?, (0, 0, 0));
    world.broker.set_max_length(None, None).await?;
    world.pass(1);
    same!(tick(world).await?, (1, 1, 0));
    same!(
        world.waiting().await?,
        ["s.20231114T230000Z", "t.20231114T230000Z"]
    );
    let there = world.broker.read_schedule(&"t".parse()?).await?;
    let there = there.ok_or_else(|| Failure::new("t is gone"))?;
    same!((there.trouble, there.next), (None, Some(hour + 3_600_000)));
    Ok(())
}

/// This includes a slot whose job exists: the one before it would never come.
async fn what_is_undecided_holds_up_what_follows(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    (schedule.overlap, schedule.catch_up) = (Overlap::Allow, CatchUp::All(10));
    put(world, &schedule).await?;
    world.at(SLOT);
    same!(tick(world).await?, (1, 1, 0));
    world.broker.set_max_length(None, Some(1)).await?;
    let (key, back) = (world.keys().schedule(&"s".parse()?), SLOT - 10_001);
    let text = back.to_string();
    world.raw::<()>(&["HSET", &key, "position", &text]).await?;
    world
        .raw::<()>(&["ZADD", &world.keys().schedules(), &text, "s"])
        .await?;
    same!(tick(world).await?, (1, 0, 0));
    same!(read(world).await?.position, Some(back));
    world.broker.set_max_length(None, None).await?;
    world.pass(5_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(world.waiting().await?, [FIRST, "s.20231114T221320Z"]);
    Ok(())
}

/// The slot is reported, and the next slot comes.
async fn what_a_queue_never_takes_is_given_up(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let field = format!("queue:{}", world.queue());
    world
        .raw::<()>(&["HSET", &world.keys().config(), &field, "payload=1"])
        .await?;
    world.at(SLOT);
    let large = world.broker.fire_schedules().await?;
    same!(
        (large.stored, large.troubles.len(), large.next),
        (0, 1, Some(Duration::from_secs(10)))
    );
    same!(read(world).await?.position, Some(SLOT));
    Ok(())
}

/// The other schedules run.
async fn a_queue_that_is_no_list_holds_up_nobody(world: &World) -> Outcome {
    let mut python = world.job("any")?;
    python.route.script_type = "python".parse()?;
    let there = every(world, "@every 10s")?;
    put(
        world,
        &Schedule::new(there.name.clone(), there.timing.clone(), python),
    )
    .await?;
    put(world, &named(world, "t", "@every 10s")?).await?;
    let queue = world.queue_of("python");
    world.raw::<()>(&["SET", &queue, "x"]).await?;
    world.at(SLOT);
    let ticked = world.broker.fire_schedules().await?;
    same!((ticked.stored, ticked.troubles.len()), (1, 1));
    same!(world.waiting().await?, ["t.20231114T221330Z"]);
    check!(read(world).await?.trouble.is_some());
    world.raw::<()>(&["DEL", &queue]).await?;
    world.pass(5_000);
    same!(tick(world).await?, (1, 1, 0));
    Ok(())
}

/// The other schedules run, and this one is read again.
async fn what_cannot_be_read_holds_up_nobody(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    put(world, &named(world, "t", "@every 10s")?).await?;
    let key = world.keys().schedule(&"s".parse()?);
    let good: String = world.raw(&["HGET", &key, "record"]).await?;
    world.raw::<()>(&["HSET", &key, "record", "{}"]).await?;
    world.at(SLOT);
    let ticked = world.broker.fire_schedules().await?;
    same!((ticked.stored, ticked.troubles.len()), (1, 1));
    let there = read(world).await?;
    check!(there.schedule.is_err() && there.trouble.is_some());
    same!(
        (there.next, there.position),
        (Some(SLOT + 5_000), Some(START))
    );
    same!(tick(world).await?, (0, 0, 0));
    world.raw::<()>(&["HSET", &key, "record", &good]).await?;
    world.pass(5_000);
    same!(tick(world).await?, (1, 1, 0));
    same!(read(world).await?.trouble, None);
    Ok(())
}

/// The schedule was deleted by hand.
async fn a_name_without_a_schedule_is_dropped(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let key = world.keys().schedule(&"s".parse()?);
    world.raw::<()>(&["DEL", &key]).await?;
    world.at(SLOT);
    same!(tick(world).await?, (0, 0, 0));
    let names: Vec<String> = world
        .raw(&["ZRANGE", &world.keys().schedules(), "0", "-1"])
        .await?;
    same!(names, [""; 0]);
    Ok(())
}

/// A bound keeps calls from blocking the server.
async fn takes_a_bounded_number(world: &World) -> Outcome {
    for n in 0..300 {
        put(world, &named(world, &format!("s{n}"), "@every 10s")?).await?;
    }
    world.at(SLOT);
    let first = world.broker.fire_schedules().await?;
    same!(
        (first.due, first.stored, first.next),
        (250, 250, Some(Duration::ZERO))
    );
    let second = world.broker.fire_schedules().await?;
    same!(
        (second.due, second.stored, second.next),
        (50, 50, Some(Duration::from_secs(10)))
    );
    Ok(())
}

/// At least one schedule is read.
async fn reads_a_bounded_number_of_bytes(world: &World) -> Outcome {
    for name in ["a", "b", "c"] {
        let mut job = world.job("any")?;
        // The total is more than one call reads.
        job.input = Some(vec![b'x'; 1_200_000]);
        let timing = every(world, "@every 10s")?.timing;
        put(world, &Schedule::new(name.parse()?, timing, job)).await?;
    }
    world.at(SLOT);
    let first = world.broker.fire_schedules().await?;
    same!(
        (first.due, first.stored, first.next),
        (1, 1, Some(Duration::ZERO))
    );
    same!(
        (tick(world).await?, tick(world).await?),
        ((1, 1, 0), (1, 1, 0))
    );
    same!(tick(world).await?, (0, 0, 0));
    for id in world.waiting().await? {
        same!(
            world.read(&id).await?.input.map_or(0, |input| input.len()),
            1_200_000
        );
    }
    Ok(())
}

/// Nothing is written.
async fn nothing_to_do_is_no_error(world: &World) -> Outcome {
    same!(world.broker.fire_schedules().await?, FiredSlots::default());
    world.unchanged("").await
}
