//! schedule: schedules are stored, changed and deleted, without undoing concurrent decisions.

use meshwork_broker::{Clock, Error, Put, ScheduleRun, Scheduled};
use meshwork_model::schedule::Schedule;
use meshwork_model::schedule::policy::{CatchUp, Overlap};
use meshwork_model::schedule::timing::Timing;

use crate::cases::harness::world::START;
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    is_kept_as_it_is,
    is_not_overwritten,
    what_cannot_be_meant_is_not_kept,
    another_takes_its_place_without_a_gap,
    a_due_slot_that_cannot_be_decided_keeps_it,
    a_clock_that_went_back_brings_no_slot_again,
    rests_and_goes_on,
    rests_on_when_it_is_replaced,
    is_forgotten,
    what_is_not_there_is_not_changed,
    a_page_has_all,
    runs_by_hand,
    does_not_run_by_hand_beside_itself,
    what_was_read_before_a_change_decides_nothing,
    of_many_who_add_it_at_once_one_does,
    a_change_beside_a_slot_takes_nothing_back,
    wakes_whoever_waits_for_what_is_due,
    far_away_times_are_whole_numbers,
];

/// First slot of schedules with an interval of ten seconds.
pub(crate) const SLOT: u64 = START - 123 + 10_000;

/// Returns a schedule named `s`, whose job is for any worker of type `osis`.
pub(crate) fn every(world: &World, rhythm: &str) -> Result<Schedule, Failure> {
    named(world, "s", rhythm)
}

pub(crate) fn named(world: &World, name: &str, rhythm: &str) -> Result<Schedule, Failure> {
    let timing = Timing::new(rhythm.parse()?);
    Ok(Schedule::new(name.parse()?, timing, world.job("any")?))
}

/// Stores a new schedule.
pub(crate) async fn put(world: &World, schedule: &Schedule) -> Outcome {
    same!(
        world.broker.put_schedule(schedule, false).await?,
        Put::Added
    );
    Ok(())
}

pub(crate) async fn read(world: &World) -> Result<Scheduled, Failure> {
    let read = world.broker.read_schedule(&"s".parse()?).await?;
    read.ok_or_else(|| Failure::new("the schedule is not there"))
}

/// Runs a tick, and returns the number of stored jobs.
async fn stored(world: &World) -> Result<usize, Failure> {
    Ok(world.broker.fire_schedules().await?.stored)
}

/// Each property is stored, and the state so far.
async fn is_kept_as_it_is(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    schedule.timing.end = Some(SLOT + 1_000_000);
    schedule.catch_up = CatchUp::All(7);
    schedule.overlap = Overlap::Allow;
    let mut job = world.job("any")?;
    job.input = Some(vec![0, 255]);
    let mut kept = Schedule::new(schedule.name.clone(), schedule.timing.clone(), job);
    (kept.catch_up, kept.overlap) = (schedule.catch_up, schedule.overlap);
    put(world, &kept).await?;
    let read = read(world).await?;
    let there = read.schedule.clone().map_err(Failure::new)?;
    same!(there.encode(), kept.encode());
    same!(there.input(), kept.input());
    same!((read.next, read.position), (Some(SLOT), Some(START)));
    same!((read.paused, read.last, read.trouble), (false, None, None));
    same!((read.runs, read.skipped), (0, 0));
    same!(read.created_at, "2023-11-14T22:13:20.123Z");
    same!(read.updated_at, read.created_at);
    Ok(())
}

/// A second call that adds it gets an error.
async fn is_not_overwritten(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    let before = world.all().await?;
    let other = every(world, "@hourly")?;
    same!(world.broker.put_schedule(&other, false).await?, Put::Exists);
    world.unchanged(&before).await
}

/// Nothing is written.
async fn what_cannot_be_meant_is_not_kept(world: &World) -> Outcome {
    let mut bad = every(world, "@every 10s")?;
    bad.catch_up = CatchUp::All(2);
    let said = world.broker.put_schedule(&bad, true).await;
    check!(matches!(said, Err(Error::Schedule(_))));
    let mut over = every(world, "@every 10s")?;
    over.timing.end = Some(START);
    let said = world.broker.put_schedule(&over, true).await;
    check!(matches!(said, Err(Error::ScheduleOver { .. })));
    world.unchanged("").await
}

/// A due slot follows the old version; later slots the new one.
async fn another_takes_its_place_without_a_gap(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    world.at(SLOT + 5);
    world.pass(0);
    let mut other = every(world, "@every 7s")?;
    other.overlap = Overlap::Allow;
    same!(
        world.broker.put_schedule(&other, true).await?,
        Put::Replaced
    );
    same!(world.waiting().await?, ["s.20231114T221330Z"]);
    let read = read(world).await?;
    same!(read.position, Some(SLOT + 5));
    same!(read.created_at, "2023-11-14T22:13:20.123Z");
    same!(read.updated_at, "2023-11-14T22:13:30.005Z");
    // 1,700,000,010 is no multiple of seven; the slot is the next one.
    let next = SLOT.div_ceil(7_000) * 7_000;
    same!(read.next, Some(next));
    world.at(next);
    same!(stored(world).await?, 1);
    same!(world.waiting().await?.len(), 2);
    Ok(())
}

/// Its queue is full: the slot would be lost.
async fn a_due_slot_that_cannot_be_decided_keeps_it(world: &World) -> Outcome {
    put(world, &every(world, "@every 10s")?).await?;
    world.broker.set_max_length(None, Some(0)).await?;
    world.at(SLOT);
    let other = every(world, "@hourly")?;
    let said = world.broker.put_schedule(&other, true).await;
    let said = said.map(|_| ()).map_err(|error| error.to_string());
    check!(said.is_err_and(|said| said.contains("its queue is full")));
    let there = read(world).await?.schedule.map_err(Failure::new)?;
    same!(there.timing.rhythm.to_string(), "@every 10s");
    Ok(())
}

/// Neither a replacement nor a resumption repeats a slot.
async fn a_clock_that_went_back_brings_no_slot_again(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    schedule.overlap = Overlap::Allow;
    put(world, &schedule).await?;
    world.at(SLOT);
    same!(stored(world).await?, 1);
    world.at(START);
    same!(
        world.broker.put_schedule(&schedule, true).await?,
        Put::Replaced
    );
    same!(read(world).await?.next, Some(SLOT + 10_000));
    world.broker.pause_schedule(&schedule.name).await?;
    world.broker.resume_schedule(&schedule.name).await?;
    same!(read(world).await?.next, Some(SLOT + 10_000));
    Ok(())
}

/// Slots during the pause do not run.
async fn rests_and_goes_on(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    (schedule.catch_up, schedule.overlap) = (CatchUp::All(9), Overlap::Allow);
    put(world, &schedule).await?;
    let name = schedule.name.clone();
    check!(world.broker.pause_schedule(&name).await?);
    check!(world.broker.pause_schedule(&name).await?);
    let there = read(world).await?;
    same!((there.paused, there.next), (true, None));
    world.at(SLOT + 20_001);
    same!(stored(world).await?, 0);
    check!(world.broker.resume_schedule(&name).await?);
    let there = read(world).await?;
    same!((there.paused, there.next), (false, Some(SLOT + 30_000)));
    let before = world.all().await?;
    world.pass(1);
    check!(world.broker.resume_schedule(&name).await?);
    world.unchanged(&before).await?;
    same!(stored(world).await?, 0);
    world.at(SLOT + 30_000);
    same!(stored(world).await?, 1);
    Ok(())
}

/// A new release of its owner does not resume it.
async fn rests_on_when_it_is_replaced(world: &World) -> Outcome {
    let schedule = every(world, "@every 10s")?;
    put(world, &schedule).await?;
    world.broker.pause_schedule(&schedule.name).await?;
    let other = every(world, "@every 20s")?;
    same!(
        world.broker.put_schedule(&other, true).await?,
        Put::Replaced
    );
    world.at(SLOT + 20_000);
    same!(stored(world).await?, 0);
    check!(read(world).await?.paused);
    Ok(())
}

/// Its jobs stay; if it is added again, it starts from the beginning.
async fn is_forgotten(world: &World) -> Outcome {
    let schedule = every(world, "@every 10s")?;
    put(world, &schedule).await?;
    world.at(SLOT);
    same!(stored(world).await?, 1);
    check!(world.broker.remove_schedule(&schedule.name).await?);
    let keys: Vec<String> = world
        .raw(&["KEYS", &format!("{}:q:schedule*", world.keys().namespace())])
        .await?;
    same!(keys, [""; 0]);
    same!(world.waiting().await?, ["s.20231114T221330Z"]);
    put(world, &schedule).await?;
    same!(read(world).await?.runs, 0);
    same!(stored(world).await?, 0);
    Ok(())
}

/// Nothing is written.
async fn what_is_not_there_is_not_changed(world: &World) -> Outcome {
    let name = "s".parse()?;
    check!(!world.broker.pause_schedule(&name).await?);
    check!(!world.broker.resume_schedule(&name).await?);
    check!(!world.broker.remove_schedule(&name).await?);
    check!(world.broker.read_schedule(&name).await?.is_none());
    // A key of another program.
    let key = world.keys().schedule(&name);
    world.raw::<()>(&["SET", &key, "x"]).await?;
    let before = world.all().await?;
    check!(world.broker.pause_schedule(&name).await.is_err());
    check!(world.broker.resume_schedule(&name).await.is_err());
    check!(world.broker.remove_schedule(&name).await.is_err());
    world.unchanged(&before).await
}

/// Foreign names are skipped.
async fn a_page_has_all(world: &World) -> Outcome {
    for n in 0..30 {
        put(world, &named(world, &format!("s{n}"), "@hourly")?).await?;
    }
    let names = world.keys().schedules();
    world
        .raw::<()>(&["ZADD", &names, "1", "a b", "1", "gone"])
        .await?;
    let (mut found, mut from) = (Vec::new(), 0);
    loop {
        let page = world.broker.schedules(from).await?;
        found.extend(
            page.schedules
                .into_iter()
                .map(|there| there.name.to_string()),
        );
        from = page.next;
        if from == 0 {
            break;
        }
    }
    found.sort();
    found.dedup();
    same!(found.len(), 30);
    Ok(())
}

/// The run is in addition to its slots, also during a pause.
async fn runs_by_hand(world: &World) -> Outcome {
    let schedule = every(world, "@every 10s")?;
    put(world, &schedule).await?;
    world.broker.pause_schedule(&schedule.name).await?;
    let before = read(world).await?;
    let ran = world
        .broker
        .run_schedule(&before, &schedule, "by-hand")
        .await?;
    same!(ran, Some(ScheduleRun::Stored("s.by-hand".parse()?)));
    same!(world.waiting().await?, ["s.by-hand"]);
    let after = read(world).await?;
    same!((after.position, after.next), (before.position, None));
    same!(after.last, Some("s.by-hand".parse()?));
    let slot = world.read("s.by-hand").await?.env_vars["MESHWORK_SLOT"].clone();
    same!(slot, "2023-11-14T22:13:20.123Z");
    Ok(())
}

/// The policy applies to it too, and a full queue is reported and not tried again.
async fn does_not_run_by_hand_beside_itself(world: &World) -> Outcome {
    let schedule = every(world, "@every 10s")?;
    put(world, &schedule).await?;
    world.at(SLOT);
    same!(stored(world).await?, 1);
    let there = read(world).await?;
    let ran = world.broker.run_schedule(&there, &schedule, "a").await?;
    same!(ran, Some(ScheduleRun::Skipped));
    world.finish(&world.take_one().await?, "").await?;
    world.broker.set_max_length(None, Some(0)).await?;
    let ran = world.broker.run_schedule(&there, &schedule, "b").await?;
    same!(
        ran,
        Some(ScheduleRun::Refused("its queue is full".to_owned()))
    );
    same!(read(world).await?.next, Some(SLOT + 10_000));
    same!(world.waiting().await?, [""; 0]);
    Ok(())
}

/// A version from before a decision of a slot, or before a change, decides nothing.
async fn what_was_read_before_a_change_decides_nothing(world: &World) -> Outcome {
    let mut schedule = every(world, "@every 10s")?;
    schedule.overlap = Overlap::Allow;
    put(world, &schedule).await?;
    let old = read(world).await?;
    world.at(SLOT);
    same!(stored(world).await?, 1);
    same!(world.broker.run_schedule(&old, &schedule, "a").await?, None);
    let old = read(world).await?;
    world.broker.pause_schedule(&schedule.name).await?;
    same!(world.broker.run_schedule(&old, &schedule, "b").await?, None);
    world.broker.remove_schedule(&schedule.name).await?;
    let before = world.all().await?;
    same!(world.broker.run_schedule(&old, &schedule, "c").await?, None);
    world.unchanged(&before).await
}

/// The other calls get an error.
async fn of_many_who_add_it_at_once_one_does(world: &World) -> Outcome {
    let schedule = every(world, "@every 10s")?;
    let all = (0..8).map(|_| world.broker.put_schedule(&schedule, false));
    let put = futures_util::future::try_join_all(all).await?;
    same!(put.iter().filter(|put| **put == Put::Added).count(), 1);
    same!(put.iter().filter(|put| **put == Put::Exists).count(), 7);
    Ok(())
}

/// The caller's clock is late: slots that were decided meanwhile stay decided, however the two calls interleave.
async fn a_change_beside_a_slot_takes_nothing_back(world: &World) -> Outcome {
    let (clock, _) = Clock::manual(SLOT);
    let ahead = world.broker.clone().with_clock(clock);
    // Both calls advance step by step, without an additional step for a script that the server does not have yet.
    world.broker.load().await?;
    for step in 0..2 * STEPS {
        let name = format!("s{step}");
        put(world, &named(world, &name, "@every 10s")?).await?;
        let changed = named(world, &name, "@every 7s")?;
        let tick = after(step.saturating_sub(STEPS), ahead.fire_schedules());
        let change = after(
            STEPS.saturating_sub(step),
            world.broker.put_schedule(&changed, true),
        );
        let (ticked, changed) = Box::pin(futures_util::future::try_join(tick, change)).await?;
        same!(changed, Put::Replaced);
        let name = name.parse()?;
        let there = world.broker.read_schedule(&name).await?;
        let position = there.and_then(|there| there.position);
        check!(ticked.stored == 0 || position > Some(START));
        check!(world.broker.remove_schedule(&name).await?);
    }
    Ok(())
}

/// Most steps by which one of two calls begins before the other.
const STEPS: usize = 8;

async fn after<T>(steps: usize, call: impl Future<Output = T>) -> T {
    for _ in 0..steps {
        tokio::task::yield_now().await;
    }
    call.await
}

/// Only the earliest due time sends a wake-up.
async fn wakes_whoever_waits_for_what_is_due(world: &World) -> Outcome {
    let due = world.named("DUE")?;
    put(world, &named(world, "a", "@hourly")?).await?;
    same!(world.list(&due).await?, ["1"]);
    world.raw::<()>(&["DEL", &due]).await?;
    put(world, &named(world, "b", "@daily")?).await?;
    same!(world.list(&due).await?, [""; 0]);
    put(world, &named(world, "c", "@every 1s")?).await?;
    same!(world.list(&due).await?, ["1"]);
    Ok(())
}

/// A sorted set stores them exactly.
async fn far_away_times_are_whole_numbers(world: &World) -> Outcome {
    put(world, &every(world, "0 0 29 2 *")?).await?;
    let next: String = world
        .raw(&["ZSCORE", &world.keys().schedules(), "s"])
        .await?;
    same!(next, "1709164800000");
    same!(
        world
            .broker
            .promote()
            .await?
            .next
            .map(|next| next.as_millis()),
        Some(9_164_799_877)
    );
    Ok(())
}
