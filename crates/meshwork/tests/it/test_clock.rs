//! A clock that tests advance: delays, retries, schedules and unique names go by it.

use std::time::{Duration, UNIX_EPOCH};

use meshwork::testing::{Clock, drain};
use meshwork::{Attempt, JobError, NewSchedule, OnDuplicate, Until, Worker};

const HOUR: Duration = Duration::from_secs(3600);

#[meshwork::job(output = u32, retries = 2, backoff = "1h")]
struct Call;

#[meshwork::job]
struct Report;

async fn call(_: Call, Attempt(attempt): Attempt) -> Result<u32, JobError> {
    match attempt {
        3 => Ok(attempt),
        _ => Err(JobError::retry("nobody answers")),
    }
}

async fn report(_: Report) -> Result<(), String> {
    Ok(())
}

#[tokio::test]
async fn delays_and_retries_become_due() {
    let clock = Clock::new();
    let client = clock.client();
    let worker = Worker::new(&client).job(call);
    let job = client.enqueue(Call).delay(HOUR).await.unwrap();
    // The delay, and two pauses of 60 to 75 minutes.
    for finished in [0, 0, 0, 1] {
        let done = drain(&client, worker.clone()).await.unwrap();
        assert_eq!((done.finished, done.delayed), (finished, 1 - finished));
        clock.advance(2 * HOUR);
    }
    assert_eq!(job.result().await.unwrap(), 3);
}

#[tokio::test]
async fn slots_of_schedules_become_due() {
    let clock = Clock::new();
    let client = clock.client();
    let worker = Worker::new(&client).job(report);
    let hourly = NewSchedule::every(HOUR, Report).unwrap();
    let schedule = client.schedule("hourly").unwrap();
    schedule.add(hourly).await.unwrap();
    for slots in 0..3 {
        let done = drain(&client, worker.clone()).await.unwrap();
        assert_eq!(done.finished, slots);
        clock.advance(HOUR);
    }
}

#[tokio::test]
async fn names_are_free_again() {
    let clock = Clock::new();
    let client = clock.client();
    let throttled = || client.enqueue(Report).throttle("report", HOUR);
    let until = Until::For(3_600_000);
    let unique = || {
        client
            .enqueue(Report)
            .unique("one", until, OnDuplicate::Keep)
    };
    for _ in 0..2 {
        for is_new in [true, false] {
            assert_eq!(throttled().await.unwrap().is_new(), is_new);
            assert_eq!(unique().await.unwrap().is_new(), is_new);
        }
        clock.advance(HOUR);
    }
}

#[test]
fn the_clock_shows_the_time() {
    let clock = Clock::default();
    let (before, again) = (clock.now(), clock.clone());
    again.advance(HOUR);
    assert!(clock.now() >= before + HOUR);
}

#[tokio::test]
async fn the_clock_stops_at_the_end_of_the_year_9999() {
    let clock = Clock::new();
    let client = clock.client();
    let worker = Worker::new(&client).job(report);
    for finished in [1, 2] {
        clock.advance(Duration::MAX);
        client.enqueue(Report).await.unwrap();
        let done = drain(&client, worker.clone()).await.unwrap();
        assert_eq!(done.finished, finished);
    }
    let end = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    assert!((end..end + HOUR).contains(&clock.now()));
}
