//! Maintenance, and the order of claims. Called by the tests of the worker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::runtime::log::Stream;
use meshwork::{Client, JobRequest, NewSchedule, Prefetch, Retention};
use meshwork_model::job::{NewJob, When};
use meshwork_model::name::JobId;
use meshwork_model::outcome::{Failure, FailureKind, Report};
use meshwork_model::retry::RetryBackoff;
use meshwork_model::route::Priority;
use meshwork_model::schedule::policy::Overlap;
use meshwork_model::state::Status;
use meshwork_model::time::parse_iso;
use meshwork_test_servers::eventually;
use tokio::time::Instant;

use super::{PATIENCE, worker};
use crate::worker_support::{Gate, Scripted, osis, raw};

/// Checks that one of some rounds is late by less than `within`: polling once a second would be late by 0.5 s on
/// average, and a busy machine is not late each time.
async fn on_time(within: u64, mut late: impl AsyncFnMut() -> u64) {
    let mut rounds = Vec::new();
    while rounds.len() < 6 {
        match late().await {
            ms if ms < within => return,
            ms => rounds.push(ms),
        }
    }
    panic!("late by {rounds:?} ms");
}

pub(crate) async fn a_retry_comes_when_it_is_due(client: Client) {
    const PAUSE: Duration = Duration::from_millis(200);
    let runs = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&runs);
    let runner = Scripted::new(move |run| {
        noted.lock().unwrap().push(Instant::now());
        match run.job.attempt {
            1 => Report::failed(Failure::new(FailureKind::Script, "once")),
            _ => Report::done("then"),
        }
    });
    let backoff = RetryBackoff {
        first: PAUSE,
        cap: PAUSE,
    };
    let worker = worker(&client, &runner)
        .backoff(backoff)
        .start()
        .await
        .unwrap();
    on_time(100, async || {
        runs.lock().unwrap().clear();
        let request = JobRequest::new(osis(), "x").retries(1);
        client.run(request).await.unwrap();
        let runs = runs.lock().unwrap();
        let pause = runs[1].duration_since(runs[0]);
        assert!(pause >= PAUSE.mul_f64(0.75), "{pause:?}");
        pause.saturating_sub(PAUSE).as_millis().try_into().unwrap()
    })
    .await;
    worker.stop().await;
}

pub(crate) async fn slots_of_a_schedule_come_when_they_are_due(client: Client) {
    let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
    let every = Duration::from_secs(1);
    let request = NewSchedule::every(every, JobRequest::new(osis(), "x")).unwrap();
    let schedule = client.schedule("ticks").unwrap();
    schedule.add(request.overlap(Overlap::Allow)).await.unwrap();
    eventually("eight slots have run", PATIENCE, async || {
        (schedule.show().await.unwrap().runs >= 8).then_some(())
    })
    .await;
    schedule.remove().await.unwrap();
    let late = async |slot: &JobId| {
        let job = client.result(slot, PATIENCE).await.unwrap();
        let slot = parse_iso(&job.env_vars["MESHWORK_SLOT"]).unwrap();
        parse_iso(&job.created_at).unwrap() - slot
    };
    let mut soonest = u64::MAX;
    let page = client.list(0).await.unwrap();
    assert!(page.jobs.len() >= 8);
    for job in page.jobs {
        soonest = soonest.min(late(&job.job_id()).await);
    }
    // One look a second would be late by half a second.
    assert!(soonest < 100, "{soonest} ms");
    worker.stop().await;
}

/// Far sooner than the next look: who adds it wakes the worker.
pub(crate) async fn the_first_slot_of_a_new_schedule_is_on_time(client: Client) {
    let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
    let hour = Duration::from_secs(3600);
    let mut n = 0;
    on_time(200, async || {
        let mut late = Vec::new();
        for _ in 0..5 {
            n += 1;
            // The next whole second.
            let start = client.broker().now().await.unwrap();
            let request = NewSchedule::every(hour, JobRequest::new(osis(), "x")).unwrap();
            let schedule = client.schedule(&format!("new{n}")).unwrap();
            schedule.add(request.start(start)).await.unwrap();
            let job = eventually("the slot has run", PATIENCE, async || {
                schedule.show().await.unwrap().last
            });
            let job = client.result(&job.await, PATIENCE).await.unwrap();
            let slot = parse_iso(&job.env_vars["MESHWORK_SLOT"]).unwrap();
            assert!((start..=start + 1000).contains(&slot), "{start} {slot}");
            late.push(parse_iso(&job.created_at).unwrap() - slot);
        }
        late.sort_unstable();
        late[2]
    })
    .await;
    worker.stop().await;
}

/// Delay of each claim after the due time of its job, by the server's clock, in ms.
async fn lateness(client: &Client, jobs: &[NewJob]) -> Vec<u64> {
    let mut late = Vec::new();
    for job in jobs {
        client.result(&job.id, PATIENCE).await.unwrap();
        let key = format!("hero:job:{}", job.id);
        let times = ["HMGET", &key, "mw_started", "mw_run_at"];
        let (started, due): (u64, u64) = raw(client, &times).await;
        assert!(started >= due, "{started} is before {due}");
        late.push(started - due);
    }
    late.sort_unstable();
    late
}

fn in_ms(ms: u64) -> NewJob {
    let mut job = JobRequest::new(osis(), "x").build().unwrap();
    job.when = Some(When::In(ms));
    job
}

/// Each is the new first delayed job, so no earlier check knows of it.
pub(crate) async fn delayed_jobs_come_when_they_are_due(client: Client) {
    let runner = Scripted::echo();
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(worker(&client, &runner).start().await.unwrap());
    }
    for worker in &workers {
        worker.registered().await;
    }
    let far = in_ms(900_000);
    client
        .enqueue_built(std::slice::from_ref(&far))
        .await
        .unwrap();
    on_time(100, async || {
        let mut jobs = Vec::new();
        for n in 0..20 {
            let job = in_ms(600 - 25 * n);
            client
                .enqueue_built(std::slice::from_ref(&job))
                .await
                .unwrap();
            jobs.push(job);
        }
        lateness(&client, &jobs).await[10]
    })
    .await;
    let job = client.status(&far.id).await.unwrap();
    assert_eq!(job.status(), Some(Status::Dispatched));
    for worker in workers {
        worker.stop().await;
    }
}

/// Those who have not the turn, and heard no word, look too.
pub(crate) async fn a_job_whose_word_is_lost_comes_all_the_same(client: Client) {
    let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
    worker.registered().await;
    let jobs: Vec<_> = (0..5).map(|_| in_ms(600_000)).collect();
    client.enqueue_built(&jobs).await.unwrap();
    let (seconds, _): (u64, u64) = raw(&client, &["TIME"]).await;
    // Somebody who is dead has the turn for some seconds.
    let ends = ((seconds + 8) * 1000).to_string();
    let _: String = raw(&client, &["SET", "hero:q:turn", &ends]).await;
    for (n, job) in jobs.iter().enumerate() {
        let (key, due) = (
            format!("hero:job:{}", job.id),
            (seconds * 1000 + 3000 + 250 * n as u64).to_string(),
        );
        let _: usize = raw(&client, &["HSET", &key, "mw_run_at", &due]).await;
        let delayed = ["ZADD", "hero:q:delayed", &due, job.id.as_str()];
        let _: usize = raw(&client, &delayed).await;
    }
    let late = lateness(&client, &jobs).await;
    // They would be late by four seconds and more.
    assert!(late[2] < 1500, "{late:?}");
    worker.stop().await;
}

pub(crate) async fn all_who_wait_for_a_job_are_told(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let worker = worker(&client, &runner)
        .concurrency(50)
        .start()
        .await
        .unwrap();
    let first = client.enqueue(JobRequest::new(osis(), "x")).await.unwrap();
    gate.wait_for(1).await;
    let jobs: Vec<_> = (0..350)
        .map(|_| {
            JobRequest::new(osis(), "x")
                .depends_on(first.clone())
                .build()
                .unwrap()
        })
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    gate.open();
    for job in &jobs {
        client.result(&job.id, PATIENCE).await.unwrap();
    }
    assert_eq!(runner.runs(), 351);
    worker.stop().await;
}

pub(crate) async fn old_jobs_are_forgotten(client: Client) {
    let retention = Retention {
        count: 2,
        ..Retention::default()
    };
    let worker = worker(&client, &Scripted::echo()).retention(retention);
    let worker = worker.start().await.unwrap();
    let mut last = None;
    for n in 0..6 {
        last = Some(
            client
                .run(JobRequest::new(osis(), format!("{n}")))
                .await
                .unwrap(),
        );
    }
    eventually("two are left", PATIENCE, async || {
        let jobs: Vec<String> = raw(&client, &["KEYS", "hero:job:*"]).await;
        (jobs.len() == 2).then_some(())
    })
    .await;
    let last = last.unwrap().job_id();
    assert!(client.status(&last).await.is_ok(), "the newest is there");
    worker.stop().await;
}

pub(crate) async fn ids_that_came_to_nobody_are_found(client: Client) {
    let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
    let job = JobRequest::new(osis(), "orphaned").build().unwrap();
    let key = format!("hero:job:{}", job.id);
    let fields = ["HSET", &key, "script", "orphaned", "status", "dispatched"];
    let _: usize = raw(&client, &fields).await;
    let feed = "hero:q:feed:gone.1.00 hero:q:work:type:osis";
    let _: usize = raw(&client, &["LPUSH", feed, job.id.as_str()]).await;
    client.result(&job.id, PATIENCE).await.unwrap();
    worker.stop().await;
}

pub(crate) async fn what_is_urgent_comes_first_and_starves_nobody(client: Client) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&order);
    let runner = Scripted::new(move |run| {
        noted.lock().unwrap().push(run.job.script.clone());
        Report::done("")
    });
    let job = |name: &str, priority| {
        let job = JobRequest::new(osis(), name).priority(priority);
        job.build().unwrap()
    };
    let mut jobs = vec![job("low", Priority::Low), job("normal", Priority::Normal)];
    jobs.extend((0..30).map(|_| job("high", Priority::High)));
    client.enqueue_built(&jobs).await.unwrap();
    // Each claim returns one job.
    let worker = worker(&client, &runner)
        .concurrency(1)
        .prefetch(Prefetch::Off)
        .start()
        .await
        .unwrap();
    for job in &jobs {
        client.result(&job.id, PATIENCE).await.unwrap();
    }
    worker.stop().await;
    let order = order.lock().unwrap();
    let place = |name: &[u8]| order.iter().position(|ran| ran == name).unwrap();
    assert_eq!(
        (place(b"high"), place(b"low"), place(b"normal")),
        (0, 7, 15)
    );
}

pub(crate) async fn an_alias_of_the_default_level_is_taken_from(client: Client) {
    let worker = worker(&client, &Scripted::echo()).start().await.unwrap();
    client.run(JobRequest::new(osis(), "x")).await.unwrap();
    let set = ["HSET", "hero:job:a", "status", "dispatched", "script", "x"];
    let _: usize = raw(&client, &set).await;
    let _: usize = raw(&client, &["LPUSH", "hero:q:work:type:osis:prio:1", "a"]).await;
    client
        .result(&"a".parse().unwrap(), PATIENCE)
        .await
        .unwrap();
    worker.stop().await;
}

pub(crate) async fn what_is_handed_back_stands_in_its_order(client: Client) {
    let gate = Gate::new();
    let first = worker(&client, &Scripted::gated(&gate))
        .shutdown_timeout(Duration::ZERO)
        .concurrency(8);
    let first = first.start().await.unwrap();
    let jobs: Vec<_> = (0..8)
        .map(|n| JobRequest::new(osis(), format!("{n}")).build().unwrap())
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    gate.wait_for(8).await;
    assert_eq!(first.stop().await, 8);
    // The right end is the front.
    let mut left: Vec<String> = raw(&client, &["LRANGE", "hero:q:work:type:osis", "0", "-1"]).await;
    left.reverse();
    let submitted: Vec<_> = jobs.iter().map(|job| job.id.to_string()).collect();
    assert_eq!(left, submitted);
}

pub(crate) async fn what_a_run_says_is_kept_while_it_runs(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated_after(&gate, |run| {
        let mut out = run.log.writer(Stream::Stdout);
        out.push(b"first\nsecond\n");
        run.log.progress(0.5, Some("half"));
    });
    let worker = worker(&client, &runner).start().await.unwrap();
    let id = client.enqueue(JobRequest::new(osis(), "x")).await.unwrap();
    gate.wait_for(1).await;
    let log = format!("hero:q:log:{id}");
    eventually("the lines are there", PATIENCE, async || {
        let lines: usize = raw(&client, &["XLEN", &log]).await;
        (lines == 2).then_some(())
    })
    .await;
    let job = client.status(&id).await.unwrap();
    assert_eq!(job.progress.as_deref(), Some("50% half"));
    gate.open();
    client.result(&id, PATIENCE).await.unwrap();
    worker.stop().await;
}
