//! What one worker at a time does for all, and in which order jobs are taken. Called by the tests of the
//! worker.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::model::outcome::{Failure, FailureKind, Report};
use meshwork::model::retry::RetryBackoff;
use meshwork::model::route::Priority;
use meshwork::runner::log::Stream;
use meshwork::{Client, JobRequest, Retention};
use meshwork_testkit::eventually;
use tokio::time::Instant;

use crate::worker_support::{Gate, Scripted, osis, raw};
use crate::{PATIENCE, worker};

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
    let mut soonest = PATIENCE;
    for _ in 0..4 {
        runs.lock().unwrap().clear();
        client
            .run(JobRequest::new(osis(), "x").retries(1))
            .await
            .unwrap();
        let runs = runs.lock().unwrap();
        let pause = runs[1].duration_since(runs[0]);
        assert!(pause >= PAUSE.mul_f64(0.75), "{pause:?}");
        soonest = soonest.min(pause);
    }
    // One look a second would be late by half a second.
    assert!(soonest < PAUSE + Duration::from_millis(100), "{soonest:?}");
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
    let first = client.submit(JobRequest::new(osis(), "x")).await.unwrap();
    gate.wait_for(1).await;
    let jobs: Vec<_> = (0..350)
        .map(|_| {
            JobRequest::new(osis(), "x")
                .depends_on(first.clone())
                .build()
                .unwrap()
        })
        .collect();
    client.submit_all(&jobs).await.unwrap();
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
    let job = JobRequest::new(osis(), "stranded").build().unwrap();
    let key = format!("hero:job:{}", job.id);
    let fields = ["HSET", &key, "script", "stranded", "status", "dispatched"];
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
    client.submit_all(&jobs).await.unwrap();
    let worker = worker(&client, &runner)
        .concurrency(1)
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
    let _: usize = raw(&client, &["HSET", "hero:job:a", "script", "x"]).await;
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
        .grace(Duration::ZERO)
        .concurrency(8);
    let first = first.start().await.unwrap();
    let jobs: Vec<_> = (0..8)
        .map(|n| JobRequest::new(osis(), format!("{n}")).build().unwrap())
        .collect();
    client.submit_all(&jobs).await.unwrap();
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
    let id = client.submit(JobRequest::new(osis(), "x")).await.unwrap();
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
