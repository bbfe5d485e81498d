//! Delays, limits, keys, unique names, pause and drain, and many jobs at once, as a program has them: on a real Redis
//! and on an embedded engine, without a native worker.

use std::time::Duration;

use meshwork::{
    Blocker, BulkCancel, Cancelled, Client, Enqueued, Error, JobFilter, JobRequest, QueueDepth,
    RunNow,
};
use meshwork_broker::{Claim, Claimed, Completed, PrefetchLists};
use meshwork_model::job::{NewJob, OnDuplicate, Until};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::JobId;
use meshwork_model::queue::QueueSetting as Set;
use meshwork_model::route::Priority;

/// Timeout: long enough for a busy machine, short enough to detect a hang.
const PATIENCE: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);

crate::engines::on_each_engine! {
    a_delayed_job_runs_when_somebody_says_so,
    a_drained_queue_takes_nothing_until_it_is_resumed,
    a_later_job_takes_the_place_of_the_one_before,
    a_limit_counts_what_runs_already,
    a_paused_queue_starts_nothing,
    a_rate_says_when_the_next_may_start,
    each_job_of_many_has_its_answer,
    many_jobs_are_stopped_by_what_they_are,
    one_setting_leaves_the_others,
    what_is_set_aside_is_free_without_the_limit,
}

fn request(id: &str) -> JobRequest {
    JobRequest::new("osis".parse().unwrap(), "1").id(named(id))
}

fn job(id: &str) -> NewJob {
    request(id).build().unwrap()
}

fn named(id: &str) -> JobId {
    id.parse().unwrap()
}

fn osis(client: &Client) -> String {
    client
        .broker()
        .keys()
        .work_queue_type(&"osis".parse().unwrap())
}

/// Takes up to `want` jobs off the queue, as a worker does.
async fn claim(client: &Client, want: usize) -> Vec<Claimed> {
    let claim = Claim {
        queues: &[osis(client)],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want,
        ahead: 0,
        lease: Duration::from_secs(600),
        worker: "w.1.1",
        token: "w.1.1.1",
    };
    client.broker().claim(claim).await.unwrap().jobs
}

async fn ids(client: &Client, want: usize) -> Vec<String> {
    let claimed = claim(client, want).await;
    claimed.iter().map(|one| one.job.id.clone()).collect()
}

async fn finish(client: &Client, claimed: &Claimed) {
    let report = client.broker().complete(claimed, b"1", b"", b"").await;
    assert_eq!(report.unwrap(), Completed::Finished);
}

async fn waits(client: &Client, id: &str) -> Vec<Blocker> {
    let job = client.status(&named(id)).await.unwrap();
    client.blockers(&job).await.unwrap()
}

async fn set(client: &Client, setting: Set) {
    client
        .update_queue(&osis(client), &[setting])
        .await
        .unwrap();
}

async fn one_setting_leaves_the_others(client: Client) {
    let queue = osis(&client);
    let rate = "window 7/90s".parse().unwrap();
    let many = [
        Set::Concurrency(Some(5)),
        Set::Rate(Some(rate)),
        Set::Fair(true),
        Set::Weight("a b".to_owned(), Some(3)),
    ];
    client.update_queue(&queue, &many).await.unwrap();
    // By the list of any priority: what is set is the queue's.
    let high = JobKeys::work_queue_priority(&queue, Priority::High);
    let pause = [Set::Paused(true), Set::Concurrency(Some(6))];
    client.update_queue(&high, &pause).await.unwrap();
    client.set_max_length(Some(&queue), Some(9)).await.unwrap();
    let settings = client.settings().await.unwrap();
    let is = settings.of(&high).unwrap();
    assert!(is.paused && is.fair && !is.draining, "{is:?}");
    assert_eq!((is.concurrency, is.rate), (Some(6), Some(rate)));
    assert_eq!(is.weights["a b"], 3);
    assert_eq!(settings.limits.of(&queue), Some(9));
    for bad in [
        Set::Concurrency(Some(0)),
        Set::Payload(Some(u64::MAX)),
        Set::Weight("a".to_owned(), Some(101)),
        Set::Weight("a\n".to_owned(), Some(1)),
    ] {
        let both = [Set::Fair(false), bad];
        client.update_queue(&queue, &both).await.unwrap_err();
    }
    assert_eq!(client.settings().await.unwrap(), settings);
    let none = [
        Set::Concurrency(None),
        Set::Rate(None),
        Set::Fair(false),
        Set::Weight("a b".to_owned(), None),
    ];
    client.update_queue(&queue, &none).await.unwrap();
    client.resume(&queue).await.unwrap();
    assert!(client.settings().await.unwrap().queues.is_empty());
}

async fn a_paused_queue_starts_nothing(client: Client) {
    let queue = osis(&client);
    client.pause(&queue).await.unwrap();
    client.enqueue(request("j1")).await.unwrap();
    let high = request("j2").priority(Priority::High);
    client.enqueue(high).await.unwrap();
    assert_eq!(ids(&client, 9).await, [""; 0]);
    assert_eq!(waits(&client, "j1").await, [Blocker::Paused]);
    let listed = client.queues().await.unwrap();
    let one = listed.iter().find(|info| info.queue == queue).unwrap();
    assert!(
        one.settings.as_ref().unwrap().paused && one.waiting == 1,
        "{one:?}"
    );
    client.resume(&queue).await.unwrap();
    assert_eq!(ids(&client, 9).await, ["j1"]);
    assert_eq!(waits(&client, "j2").await, []);
}

async fn a_limit_counts_what_runs_already(client: Client) {
    // More than are looked at in the step that sets the limit.
    let jobs: Vec<_> = (0..1203)
        .map(|n| request(&format!("j{n}")).key("k").build().unwrap())
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    let mut running = claim(&client, 1000).await;
    running.extend(claim(&client, 200).await);
    let queue = osis(&client);
    let limits = [
        Set::Concurrency(Some(1199)),
        Set::KeyConcurrency(Some(1300)),
    ];
    let done = client.update_queue(&queue, &limits).await.unwrap();
    assert_eq!(done.seated, 1200);
    let again = client.update_queue(&queue, &[]).await.unwrap();
    assert_eq!(again.seated, 0);
    assert_eq!(ids(&client, 9).await, [""; 0]);
    finish(&client, &running[0]).await;
    assert_eq!(ids(&client, 9).await, [""; 0]);
    assert_eq!(waits(&client, "j1200").await, [Blocker::Concurrency(1199)]);
    finish(&client, &running[1]).await;
    assert_eq!(ids(&client, 9).await, ["j1200"]);
    set(&client, Set::KeyConcurrency(Some(1200))).await;
    set(&client, Set::Concurrency(None)).await;
    // 1,199 of the key run, so one more of it may.
    assert_eq!(ids(&client, 9).await, ["j1201"]);
    let depth = client.depth(&queue).await.unwrap();
    let expected = QueueDepth {
        set_aside: 1,
        running: 1200,
        ..QueueDepth::default()
    };
    assert_eq!(depth, expected);
}

async fn what_is_set_aside_is_free_without_the_limit(client: Client) {
    let (queue, broker) = (osis(&client), client.broker());
    let limits = [
        Set::KeyConcurrency(Some(1)),
        Set::KeyRate(Some("window 100/1d".parse().unwrap())),
    ];
    client.update_queue(&queue, &limits).await.unwrap();
    for id in ["j1", "j2", "j3"] {
        client.enqueue(request(id).key("k")).await.unwrap();
    }
    assert_eq!(ids(&client, 9).await, ["j1"]);
    let waits_for = Blocker::Key {
        key: "k".to_owned(),
        ahead: 1,
        full: Some(1),
        rate: None,
    };
    assert_eq!(waits(&client, "j3").await, [waits_for]);
    let listed = client.queues().await.unwrap();
    assert_eq!((listed[0].waiting, listed[0].set_aside), (0, 2));
    let none = [Set::KeyConcurrency(None), Set::KeyRate(None)];
    let done = client.update_queue(&queue, &none).await.unwrap();
    assert_eq!(done.freed, 1);
    broker.promote().await.unwrap();
    assert_eq!(ids(&client, 9).await, ["j2", "j3"]);
}

async fn a_rate_says_when_the_next_may_start(client: Client) {
    set(&client, Set::Rate(Some("window 1/1d".parse().unwrap()))).await;
    client.enqueue_built(&[job("j1"), job("j2")]).await.unwrap();
    assert_eq!(ids(&client, 9).await, ["j1"]);
    let [Blocker::Rate(_, ms)] = waits(&client, "j2").await[..] else {
        panic!("it waits for its queue's rate");
    };
    assert!((80_000_000..=86_400_000).contains(&ms), "{ms}");
    // Another rate begins anew.
    set(&client, Set::Rate(Some("1/s burst 2".parse().unwrap()))).await;
    assert_eq!(ids(&client, 9).await, ["j2"]);
}

async fn a_drained_queue_takes_nothing_until_it_is_resumed(client: Client) {
    let queue = osis(&client);
    client.enqueue(request("j1")).await.unwrap();
    client.enqueue(request("later").delay(HOUR)).await.unwrap();
    let mut seen = Vec::new();
    let none = client.drain(&queue, Duration::ZERO, |depth| seen.push(*depth));
    let Error::DrainTimeout { depth, .. } = none.await.unwrap_err() else {
        panic!("the queue holds a job");
    };
    assert_eq!((depth.waiting, depth.delayed), (1, 1));
    assert_eq!(seen, [depth]);
    let error = client.enqueue(request("j2")).await.unwrap_err();
    assert!(matches!(error, Error::QueueDraining { .. }), "{error}");
    let claimed = claim(&client, 1).await;
    let drained = {
        let client = client.clone();
        let queue = queue.clone();
        tokio::spawn(async move { client.drain(&queue, PATIENCE, |_| ()).await })
    };
    finish(&client, &claimed[0]).await;
    let depth = drained.await.unwrap().unwrap();
    assert!(depth.is_empty() && depth.delayed == 1, "{depth:?}");
    client.resume(&queue).await.unwrap();
    client.enqueue(request("j2")).await.unwrap();
}

async fn each_job_of_many_has_its_answer(client: Client) {
    let queue = osis(&client);
    let unique = |id: &str, policy| {
        let request = request(id).unique("one", Until::Done, policy);
        request.build().unwrap()
    };
    client.set_max_length(Some(&queue), Some(2)).await.unwrap();
    set(&client, Set::Payload(Some(1000))).await;
    let jobs = [
        unique("j1", OnDuplicate::Keep),
        job("j1"),
        unique("j2", OnDuplicate::Keep),
        unique("j3", OnDuplicate::Refuse),
        request("j4").input(vec![b'x'; 1000]).build().unwrap(),
        request("j5").depends_on(named("nobody")).build().unwrap(),
        job("j6"),
        job("j7"),
    ];
    let answers = client.try_enqueue_built(&jobs).await.unwrap();
    let [
        stored,
        exists,
        kept,
        taken,
        Enqueued::Large(bytes),
        unknown,
        more,
        full,
    ] = &answers[..]
    else {
        panic!("{answers:?}");
    };
    assert_eq!((stored, exists), (&Enqueued::Stored, &Enqueued::Exists));
    assert_eq!(kept, &Enqueued::Kept(named("j1")));
    assert_eq!(taken, &Enqueued::Taken(named("j1")));
    assert!((1000..1400).contains(bytes), "{bytes}");
    assert_eq!(unknown, &Enqueued::Unknown(named("nobody")));
    assert_eq!((more, full), (&Enqueued::Stored, &Enqueued::Full));
    let mut refused = Vec::new();
    for (job, answer) in jobs.iter().zip(&answers) {
        refused.extend(client.rejection(job, answer).await.unwrap());
    }
    let words: Vec<_> = refused.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 4, "{words:?}");
    for (text, word) in words.iter().zip(["job j1", "bytes", "nobody", "2 jobs"]) {
        assert!(text.contains(word), "{text}");
    }
    // A full queue refuses before it asks for names.
    client.set_max_length(Some(&queue), None).await.unwrap();
    // A unique name applies to one type. The submitter of a duplicate gets the id of the first job.
    let kept = request("j8").unique("one", Until::Done, OnDuplicate::Keep);
    assert_eq!(client.enqueue(kept).await.unwrap(), named("j1"));
}

async fn a_later_job_takes_the_place_of_the_one_before(client: Client) {
    let pause = Duration::from_secs(600);
    for id in ["j1", "j2", "j3"] {
        client
            .enqueue(request(id).debounce("save", pause))
            .await
            .unwrap();
    }
    for (id, error) in [
        ("j1", Some("replaced by j2")),
        ("j2", Some("replaced by j3")),
        ("j3", None),
    ] {
        let job = client.status(&named(id)).await.unwrap();
        assert_eq!(job.error.as_deref(), error, "{id}");
    }
    for (id, stays) in [("k1", "k1"), ("k2", "k1")] {
        let request = request(id).throttle("mail", pause);
        assert_eq!(client.enqueue(request).await.unwrap(), named(stays));
    }
    // The key of the throttle does not end with the job.
    let claimed = claim(&client, 9).await;
    assert_eq!(claimed.len(), 1);
    finish(&client, &claimed[0]).await;
    let third = request("k3").throttle("mail", pause);
    assert_eq!(client.enqueue(third).await.unwrap(), named("k1"));
}

async fn a_delayed_job_runs_when_somebody_says_so(client: Client) {
    client.enqueue(request("j1").delay(HOUR)).await.unwrap();
    client.enqueue(request("j2").run_at_ms(1)).await.unwrap();
    assert_eq!(ids(&client, 9).await, ["j2"]);
    let job = client.status(&named("j1")).await.unwrap();
    let due = job.run_at_ms.unwrap();
    assert_eq!(client.blockers(&job).await.unwrap(), [Blocker::Time(due)]);
    let now = client.broker().now().await.unwrap();
    assert!((now + 3_500_000..=now + 3_600_000).contains(&due));
    for (id, answer) in [
        ("j1", RunNow::Queued),
        ("j1", RunNow::Ready),
        ("j2", RunNow::Running),
    ] {
        assert_eq!(client.run_now(&named(id)).await.unwrap(), answer, "{id}");
    }
    assert_eq!(ids(&client, 9).await, ["j1"]);
    let missing = client.run_now(&named("nobody")).await.unwrap_err();
    assert!(matches!(missing, Error::JobNotFound { .. }), "{missing}");
}

async fn many_jobs_are_stopped_by_what_they_are(client: Client) {
    let jobs: Vec<_> = (0..1100)
        .map(|n| {
            let request = request(&format!("j{n}")).key(if n % 2 == 0 { "even" } else { "odd" });
            request.priority(Priority::Low).build().unwrap()
        })
        .chain([job("runs"), request("later").delay(HOUR).build().unwrap()])
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    assert_eq!(ids(&client, 9).await, ["runs"]);
    let even = JobFilter {
        key: Some("even".to_owned()),
        ..JobFilter::default()
    };
    let mut refused = 0;
    let dry = client.cancel_all(&even, BulkCancel::DryRun, |_, became| {
        refused += usize::from(became.is_none());
    });
    assert_eq!(dry.await.unwrap(), 550);
    assert_eq!(refused, 550);
    let mut ended = 0;
    let stop = client.cancel_all(&even, BulkCancel::Cancel, |job, became| {
        assert_eq!(job.key.as_deref(), Some("even"));
        ended += usize::from(became == Some(Cancelled::Cancelled));
    });
    assert_eq!(stop.await.unwrap(), 550);
    assert_eq!(ended, 550);
    let normal = JobFilter {
        queue: Some(osis(&client)),
        ..JobFilter::default()
    };
    let mut became = Vec::new();
    let stop = client.cancel_all(&normal, BulkCancel::Cancel, |job, what| {
        became.push((job.id.clone(), what.unwrap()));
    });
    stop.await.unwrap();
    became.sort_by(|a, b| a.0.cmp(&b.0));
    let stopped = [
        ("later", Cancelled::Cancelled),
        ("runs", Cancelled::Stopping),
    ];
    assert_eq!(became, stopped.map(|(id, what)| (id.to_owned(), what)));
    // What is being stopped is not met again, and nothing is older than time.
    let old = JobFilter {
        until_ms: Some(1),
        ..JobFilter::default()
    };
    for (filter, left) in [(&normal, 0), (&old, 0), (&JobFilter::default(), 550)] {
        let dry = client.cancel_all(filter, BulkCancel::DryRun, |_, _| ());
        assert_eq!(dry.await.unwrap(), left);
    }
}
