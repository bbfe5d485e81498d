//! Time: its format, the choice of the clock, and jumps of the clock.

use std::time::Duration;

use meshwork_broker::{
    Claim, Clock, Completed, Control, Controlled, Failed, PrefetchLists, Reclaimed,
};
use meshwork_model::outcome::FailureKind;

use crate::cases::harness::options::{delayed, held, promote};
use crate::cases::harness::world::{Got, LEASE, LEASE_MS, START, WORKER};
use crate::cases::schedules::fire_schedules::tick;
use crate::cases::schedules::put_schedule::{every, put};
use crate::cases::{Failure, Outcome, World, cases, check, same};

cases![
    known_instants_are_written_exactly,
    every_month_begins_on_its_first_day,
    every_change_is_dated,
    the_servers_clock_counts_by_default,
    a_clock_that_jumps_back_loses_nothing,
    a_clock_that_jumps_ahead_costs_one_run,
    an_hour_back_holds_up_nothing_for_an_hour,
    each_step_back_is_counted,
    any_script_sees_a_step_back,
    a_rate_goes_on_after_a_step_back,
    what_is_due_within_an_hour_ahead_comes_at_once,
    a_clock_key_of_another_type_changes_nothing,
    far_away_times_are_whole_numbers,
];

/// Creates a job now, and returns its creation time.
async fn created(world: &World, id: &str) -> Result<String, Failure> {
    world.put(&[id]).await?;
    let at = world.field(id, "created_at").await?;
    same!(at, world.field(id, "updated_at").await?);
    Ok(at.unwrap_or_default())
}

/// Milliseconds since 1970 and the same instant in ISO 8601: ends of years, leap days, and centuries with and without
/// a leap day.
const INSTANTS: &[(u64, &str)] = &[
    (1, "1970-01-01T00:00:00.001Z"),
    (68_169_600_000, "1972-02-29T00:00:00.000Z"),
    (946_684_799_999, "1999-12-31T23:59:59.999Z"),
    (951_827_696_789, "2000-02-29T12:34:56.789Z"),
    (951_868_800_000, "2000-03-01T00:00:00.000Z"),
    (START, "2023-11-14T22:13:20.123Z"),
    (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
    (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
    (2_147_483_648_000, "2038-01-19T03:14:08.000Z"),
    (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
    (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    (4_133_980_799_010, "2100-12-31T23:59:59.010Z"),
    (13_574_563_200_000, "2400-02-29T00:00:00.000Z"),
    (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
];

/// Checks each of [`INSTANTS`].
async fn known_instants_are_written_exactly(world: &World) -> Outcome {
    for (ms, iso) in INSTANTS {
        world.at(*ms);
        same!(created(world, &format!("j{ms}")).await?, *iso);
    }
    Ok(())
}

/// Compares the last millisecond of each month and the next one with a calendar that counts months.
async fn every_month_begins_on_its_first_day(world: &World) -> Outcome {
    const DAY: u64 = 86_400_000;
    let mut first = 0_u64;
    for year in 1970..=2104_u64 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let february = if leap { 29 } else { 28 };
        let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, days) in (1..).zip(months) {
            let next = first + days * DAY;
            // Every month of some years, and February and December of all.
            if month == 2 || month == 12 || year % 25 == 0 {
                world.at(next - 1);
                let last = created(world, &format!("l{next}")).await?;
                same!(last, format!("{year}-{month:02}-{days:02}T23:59:59.999Z"));
                let (year, month) = if month == 12 {
                    (year + 1, 1)
                } else {
                    (year, month + 1)
                };
                world.at(next);
                let begun = created(world, &format!("f{next}")).await?;
                same!(begun, format!("{year}-{month:02}-01T00:00:00.000Z"));
            }
            first = next;
        }
    }
    Ok(())
}

/// Each verb that changes a job writes the time; the creation time stays.
async fn every_change_is_dated(world: &World) -> Outcome {
    let at = async |iso: &str| {
        let record = world.record("j1").await?;
        same!(record.get("updated_at").map(String::as_str), Some(iso));
        same!(
            record.get("created_at").map(String::as_str),
            Some("2023-11-14T22:13:20.123Z")
        );
        Ok::<_, Failure>(())
    };
    let mut job = world.job("j1")?;
    job.retries = 1;
    world.put_jobs(&[job]).await?;
    at("2023-11-14T22:13:20.123Z").await?;
    world.pass(1_000);
    let claimed = world.take_one().await?;
    at("2023-11-14T22:13:21.123Z").await?;
    world.pass(1_000);
    world.broker.release(&claimed).await?;
    at("2023-11-14T22:13:22.123Z").await?;
    world.take_one().await?;
    world.lose_all().await?;
    at("2023-11-14T22:13:32.123Z").await?;
    let claimed = world.take_one().await?;
    world.pass(1_000);
    world.fail(&claimed, FailureKind::Script).await?;
    at("2023-11-14T22:13:33.123Z").await?;
    let claimed = world.take_one().await?;
    world.pass(1_000);
    world.finish(&claimed, "42").await?;
    at("2023-11-14T22:13:34.123Z").await?;
    world.pass(1_000);
    world.broker.retry(&world.read("j1").await?).await?;
    at("2023-11-14T22:13:35.123Z").await?;
    world.pass(1_000);
    world
        .broker
        .cancel(&world.read("j1").await?, "stopped", true)
        .await?;
    at("2023-11-14T22:13:36.123Z").await
}

/// Returns the server's time in milliseconds.
async fn server_time(world: &World) -> Result<u64, Failure> {
    let (seconds, micros): (u64, u64) = world.raw(&["TIME"]).await?;
    Ok(seconds * 1000 + micros / 1000)
}

/// A host with a wrong clock does not expire other leases: by default the server's clock counts.
async fn the_servers_clock_counts_by_default(world: &World) -> Outcome {
    let broker = world.broker.clone().with_clock(Clock::Server);
    broker.enqueue(&[world.job("j1")?]).await?;
    let before = server_time(world).await?;
    let claim = Claim {
        queues: &[world.queue()],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: LEASE,
        worker: WORKER,
        token: "t",
    };
    same!(broker.claim(claim).await?.jobs.len(), 1);
    let after = server_time(world).await?;
    let lease = world.lease("j1").await?.unwrap_or_default();
    check!((before + LEASE_MS..=after + LEASE_MS).contains(&lease));
    same!(broker.reclaim().await?, Reclaimed::default());
    world.at(after + LEASE_MS);
    same!(world.broker.reclaim().await?.requeued, ["j1"]);
    // The clock of this case wrote that change: both times are equal.
    let created = world.field("j1", "created_at").await?.unwrap_or_default();
    let updated = world.field("j1", "updated_at").await?.unwrap_or_default();
    check!(created < updated && created[..4] == updated[..4]);
    Ok(())
}

/// Leases last longer then, but renewals and reports still work.
async fn a_clock_that_jumps_back_loses_nothing(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    let held = world.take(2).await?;
    world.at(START - 3_600_000);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    check!(world.renew(WORKER, &held[..1]).await?.is_empty());
    same!(world.lease("j1").await?, Some(START - 3_600_000 + LEASE_MS));
    same!(world.finish(&held[0], "42").await?, Completed::Finished);
    world.put(&["j3"]).await?;
    same!(world.take_one().await?.job.id, "j3");
    world.at(START + LEASE_MS);
    let mut back = world.broker.reclaim().await?.requeued;
    back.sort();
    same!(back, ["j2", "j3"]);
    Ok(())
}

/// All leases expire at once: the jobs run again, and the reports of their first runs are refused.
async fn a_clock_that_jumps_ahead_costs_one_run(world: &World) -> Outcome {
    world.put(&["j1", "j2"]).await?;
    let old = world.take(2).await?;
    world.at(START + 365 * 24 * 3_600_000);
    same!(world.broker.reclaim().await?.requeued.len(), 2);
    same!(world.finish(&old[0], "42").await?, Completed::Stale);
    same!(
        world.fail(&old[1], FailureKind::Script).await?,
        Failed::Stale
    );
    let new = world.take(2).await?;
    same!(new.len(), 2);
    for claimed in &new {
        same!((claimed.job.attempt, claimed.job.lost), (1, 1));
        same!(world.finish(claimed, "42").await?, Completed::Finished);
    }
    Ok(())
}

/// A deadline with 16 digits is a whole number, without an exponent.
async fn far_away_times_are_whole_numbers(world: &World) -> Outcome {
    world.at(253_402_300_799_999);
    world.started("j1").await?;
    world.renew(WORKER, &[]).await?;
    same!(world.lease("j1").await?, Some(253_402_300_809_999));
    same!(world.listener(WORKER).await?, Some(253_402_300_814_999));
    world.pass(LEASE_MS - 1);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    world.pass(1);
    same!(world.broker.reclaim().await?.requeued, ["j1"]);
    Ok(())
}

const HOUR: u64 = 3_600_000;

/// Polls, as each worker does once a second.
async fn poll(world: &World) -> Got<Control> {
    let request = Controlled {
        worker: WORKER,
        queues: &[],
        types: &[],
        held: &[],
        turn: Duration::from_millis(900),
    };
    Ok(world.broker.control(request).await?)
}

/// Starts a job, delays another one, and adds a schedule, all due within ten seconds.
async fn some_work(world: &World) -> Outcome {
    world.started("lost").await?;
    world.put_jobs(&[delayed(world, "later", 9_000)?]).await?;
    put(world, &every(world, "@every 10s")?).await
}

/// The time goes on from the latest one, at half speed.
async fn an_hour_back_holds_up_nothing_for_an_hour(world: &World) -> Outcome {
    some_work(world).await?;
    world.pass(1_000);
    same!(poll(world).await?.steps_back, 0);
    world.at(START + 1_000 - HOUR);
    same!(world.broker.now().await?, START + 1_000);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    same!(promote(world).await?, (0, Some(8_000)));
    same!(tick(world).await?, (0, 0, 0));
    world.pass(2 * 9_000);
    same!(world.broker.now().await?, START + 10_000);
    same!(world.broker.reclaim().await?.requeued, ["lost"]);
    same!(promote(world).await?.0, 1);
    same!(tick(world).await?, (1, 1, 0));
    same!(poll(world).await?.steps_back, 1);
    // A lease that begins now lasts as long as the others.
    same!(world.take(3).await?.len(), 3);
    world.pass(2 * LEASE_MS - 2);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    world.pass(2);
    same!(world.broker.reclaim().await?.requeued.len(), 3);
    world.pass(2 * HOUR);
    same!(world.broker.now().await?, world.now());
    Ok(())
}

/// Steps of less than two seconds, as time services make them, are none.
async fn each_step_back_is_counted(world: &World) -> Outcome {
    poll(world).await?;
    world.at(START - 2_000);
    same!(poll(world).await?.steps_back, 0);
    same!(world.broker.now().await?, START - 2_000);
    for (steps, back) in [(1, 2_001), (2, 10_000), (3, HOUR)] {
        world.at(START);
        poll(world).await?;
        let before = world.broker.now().await?;
        world.at(START - back);
        world.put(&[&format!("j{steps}")]).await?;
        same!(poll(world).await?.steps_back, steps);
        same!(world.broker.now().await?, before);
    }
    let events = world.events().await?;
    let back = events.iter().filter(|event| event[1] == "back");
    let notes: Vec<_> = back.map(|event| event[3].as_str()).collect();
    let wanted =
        ["2 s", "10 s", "3600 s"].map(|by| format!("the server's clock went back by {by}"));
    same!(notes, wanted);
    Ok(())
}

/// No worker has polled since.
async fn any_script_sees_a_step_back(world: &World) -> Outcome {
    world.started("lost").await?;
    poll(world).await?;
    world.at(START - 2_000);
    same!(world.broker.reclaim().await?, Reclaimed::default());
    same!(poll(world).await?.steps_back, 0);
    for hours in [1, 2] {
        world.at(START - hours * HOUR);
        same!(world.broker.reclaim().await?, Reclaimed::default());
        same!(world.broker.now().await?, START);
    }
    world.pass(2 * LEASE_MS);
    same!(world.broker.reclaim().await?.requeued, ["lost"]);
    Ok(())
}

async fn a_rate_goes_on_after_a_step_back(world: &World) -> Outcome {
    let rate = "rate=window:1:1000";
    let name = format!("queue:{}", world.queue());
    let config = world.keys().config();
    world.raw::<()>(&["HSET", &config, &name, rate]).await?;
    world.put(&["j1", "j2"]).await?;
    same!(world.take(2).await?.len(), 1);
    poll(world).await?;
    world.at(START - HOUR);
    same!(held(world, 1).await?, Some(1_000));
    world.pass(2_000);
    same!(world.take(2).await?.len(), 1);
    Ok(())
}

/// The leases too: their jobs run again.
async fn what_is_due_within_an_hour_ahead_comes_at_once(world: &World) -> Outcome {
    some_work(world).await?;
    poll(world).await?;
    world.pass(HOUR);
    same!(world.broker.reclaim().await?.requeued, ["lost"]);
    same!(promote(world).await?.0, 1);
    same!(tick(world).await?, (1, 1, 0));
    same!(poll(world).await?.steps_back, 0);
    same!(world.broker.now().await?, world.now());
    Ok(())
}

async fn a_clock_key_of_another_type_changes_nothing(world: &World) -> Outcome {
    let key = world.keys().clock();
    world.raw::<()>(&["LPUSH", &key, "x"]).await?;
    same!(poll(world).await?.steps_back, 0);
    world.at(START - HOUR);
    same!(world.started("j1").await?.job.id, "j1");
    same!(poll(world).await?.steps_back, 0);
    same!(world.list(&key).await?, ["x"]);
    Ok(())
}
