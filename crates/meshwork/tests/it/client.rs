//! The client on a real Redis and on an embedded engine, without a native worker: what it submits, waits for, stops,
//! follows and reads.

use std::time::Duration;

use meshwork::{Cancelled, Client, Deleted, Error, EventFilter, JobFilter, JobRequest, Retried};
use meshwork_broker::{Claim, Claimed, Failed, PrefetchLists};
use meshwork_model::job::{NewJob, OnFailure, field};
use meshwork_model::name::JobId;
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::route::Priority;
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

/// Timeout: long enough for a busy machine, short enough to detect a hang.
const PATIENCE: Duration = Duration::from_secs(30);
/// Waits that end at once.
const MOMENT: Duration = Duration::from_millis(50);

crate::engines::on_each_engine! {
    a_refused_job_says_what_is_in_the_way,
    what_several_jobs_are_refused_for,
    a_stop_returns_when_the_job_has_ended,
    a_wait_has_an_end,
    a_worker_that_writes_only_the_record_is_noticed,
    dead_letters_are_read_replayed_and_deleted,
    dead_letters_of_one_time_come_in_pages,
    events_tell_who_did_what,
    lines_are_followed_to_the_end,
    the_next_run_is_known,
}

fn request(id: &str) -> JobRequest {
    JobRequest::new("osis".parse().unwrap(), "1").id(named(id))
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

/// Takes the next job off the queue, as a worker does.
async fn claim(client: &Client, token: &str) -> Claimed {
    let claim = Claim {
        queues: &[osis(client)],
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: Duration::from_secs(600),
        worker: "w.1.1",
        token,
    };
    client.broker().claim(claim).await.unwrap().jobs.remove(0)
}

/// A job that fails for good.
async fn dies(client: &Client, id: &str, message: &str) {
    client.enqueue(request(id)).await.unwrap();
    let claimed = claim(client, id).await;
    let failure = Failure::new(FailureKind::Permanent, message);
    let report = client
        .broker()
        .fail(&claimed, &failure, b"", b"", Duration::ZERO)
        .await;
    assert_eq!(report.unwrap(), Failed::Failed);
}

async fn a_refused_job_says_what_is_in_the_way(client: Client) {
    client
        .set_max_length(Some(&osis(&client)), Some(1))
        .await
        .unwrap();
    client.enqueue(request("j1")).await.unwrap();
    let error = client.enqueue(request("j2")).await.unwrap_err();
    let Error::QueueFull { id, queue, limit } = &error else {
        panic!("{error}");
    };
    assert_eq!(
        (id, queue.as_str(), limit),
        (&named("j2"), "osis", &Some(1))
    );
    client
        .enqueue(request("j3").priority(Priority::High))
        .await
        .unwrap();
    client
        .set_max_length(Some(&osis(&client)), None)
        .await
        .unwrap();
    let lost = request("j4")
        .depends_on(named("j1"))
        .depends_on(named("nobody"));
    let error = client.enqueue(lost).await.unwrap_err().to_string();
    assert!(
        error.contains("job j4") && error.contains("job nobody"),
        "{error}"
    );
    let error = client
        .set_max_length(None, Some(u64::MAX))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("1000000000"), "{error}");
    for id in ["j2", "j4"] {
        let missing = client.status(&named(id)).await;
        assert!(
            matches!(missing, Err(Error::JobNotFound { .. })),
            "nothing was written"
        );
    }
}

async fn what_several_jobs_are_refused_for(client: Client) {
    let job = |request: JobRequest| -> NewJob { request.build().unwrap() };
    let chain = [
        job(request("j1")),
        job(request("j2")
            .depends_on(named("j1"))
            .on_failure(OnFailure::Continue)),
    ];
    client.enqueue_built(&chain).await.unwrap();
    client.enqueue_built(&chain).await.unwrap();
    let waits = client.status(&named("j2")).await.unwrap();
    assert_eq!(waits.status(), Some(Status::WaitingForPrerequisites));
    let prerequisites = client.prerequisites(&waits).await.unwrap();
    assert_eq!(prerequisites, [(named("j1"), Some(Status::Dispatched))]);
    client.set_max_length(None, Some(1)).await.unwrap();
    let more = [job(request("j1")), job(request("j3"))];
    let error = client.enqueue_built(&more).await.unwrap_err();
    assert!(
        matches!(&error, Error::QueueFull { id, .. } if *id == named("j3")),
        "{error}"
    );
}

async fn a_stop_returns_when_the_job_has_ended(client: Client) {
    client.enqueue(request("waits")).await.unwrap();
    let stopped = client
        .cancel_and_wait(&named("waits"), PATIENCE)
        .await
        .unwrap();
    assert_eq!(stopped, Cancelled::Cancelled);
    client.enqueue(request("runs")).await.unwrap();
    let runs = claim(&client, "t1").await;
    let late = client
        .cancel_and_wait(&named("runs"), MOMENT)
        .await
        .unwrap_err();
    let text = late.to_string();
    assert!(matches!(late, Error::CancelTimeout { .. }), "{text}");
    assert!(
        text.contains("job runs") && text.contains("w.1.1"),
        "{text}"
    );
    let id = named("runs");
    let (cancelled, ended) = tokio::join!(
        client.cancel_and_wait(&id, PATIENCE),
        client.broker().complete(&runs, b"1", b"", b""),
    );
    ended.unwrap();
    assert_eq!(cancelled.unwrap(), Cancelled::Ended, "it was faster");
    let again = client
        .cancel_and_wait(&named("runs"), PATIENCE)
        .await
        .unwrap();
    assert_eq!(again, Cancelled::Ended);
    client.enqueue(request("forced")).await.unwrap();
    claim(&client, "t2").await;
    let forced = client.force_cancel(&named("forced")).await.unwrap();
    assert_eq!(forced, Cancelled::Cancelled);
    let missing = client.cancel_and_wait(&named("nobody"), PATIENCE).await;
    assert!(matches!(missing, Err(Error::JobNotFound { .. })));
}

async fn a_wait_has_an_end(client: Client) {
    client.enqueue(request("j").reply(true)).await.unwrap();
    let error = client
        .wait(&named("j"), MOMENT)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("job j has not ended after 50 ms"), "{error}");
    let missing = client.wait(&named("nobody"), PATIENCE).await;
    assert!(matches!(missing, Err(Error::JobNotFound { .. })));
}

/// Hero's workers may write the hash and push no reply.
async fn a_worker_that_writes_only_the_record_is_noticed(client: Client) {
    client.enqueue(request("j").reply(true)).await.unwrap();
    let write = async {
        let key = client.broker().keys().job_hash_key(&named("j"));
        let mut cmd = redis::cmd("HSET");
        cmd.arg(key)
            .arg(field::STATUS)
            .arg("finished")
            .arg(field::OUTPUT)
            .arg("42");
        cmd.query_async::<()>(&mut client.broker().conn().clone())
            .await
            .unwrap();
    };
    let id = named("j");
    let (job, ()) = tokio::join!(client.result(&id, PATIENCE), write);
    assert_eq!(job.unwrap().output.unwrap(), b"42");
}

async fn dead_letters_are_read_replayed_and_deleted(client: Client) {
    for (id, message) in [("d1", "no disk"), ("d2", "no net"), ("d3", "no disk")] {
        dies(&client, id, message).await;
    }
    let filter = JobFilter {
        error_contains: Some("disk".to_owned()),
        reason: Some("permanent".to_owned()),
        ..JobFilter::default()
    };
    let page = client.dead_letters(&filter, None).await.unwrap();
    let ids: Vec<_> = page
        .letters
        .iter()
        .map(|letter| letter.job.id.as_str())
        .collect();
    assert_eq!((ids, page.next), (vec!["d3", "d1"], None));
    let letter = client.dead_letter(&named("d1")).await.unwrap();
    assert_eq!(letter.job.script, b"1", "the whole record");
    assert_eq!(
        client.retry_dead_letter(&letter.job).await.unwrap(),
        Retried::Queued
    );
    assert_eq!(
        client.retry_dead_letter(&letter.job).await.unwrap(),
        Retried::Unfinished
    );
    let error = client.dead_letter(&named("d1")).await.unwrap_err();
    assert!(matches!(error, Error::NotDeadLettered { .. }), "{error}");
    let letter = client.dead_letter(&named("d2")).await.unwrap();
    assert_eq!(
        client.delete_dead_letter(&letter.job).await.unwrap(),
        Deleted::Deleted
    );
    assert_eq!(
        client.delete_dead_letter(&letter.job).await.unwrap(),
        Deleted::Missing
    );
    let left = client
        .dead_letters(&JobFilter::default(), None)
        .await
        .unwrap();
    assert_eq!(left.letters.len(), 1);
}

/// However many letters have one time, and whoever takes some away between two pages.
async fn dead_letters_of_one_time_come_in_pages(client: Client) {
    const MANY: usize = 2500;
    let key = client.broker().keys().dead();
    for at in 0..MANY {
        let mut cmd = redis::cmd("ZADD");
        cmd.arg(&key).arg(5000).arg(format!("d{at:04}"));
        cmd.query_async::<()>(&mut client.broker().conn().clone())
            .await
            .unwrap();
    }
    let filter = JobFilter::default();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = client.dead_letters(&filter, cursor.as_ref()).await.unwrap();
        for letter in &page.letters {
            client.delete_dead_letter(&letter.job).await.unwrap();
        }
        seen.extend(page.letters.into_iter().map(|letter| letter.job.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), MANY);
    assert!(
        seen.is_sorted_by(|a, b| a > b),
        "each once, the newest first"
    );
    let left = client.dead_letters(&filter, None).await.unwrap();
    assert!(left.letters.is_empty());
}

async fn events_tell_who_did_what(client: Client) {
    let client = Client::new(client.broker().clone().acting_as("me"));
    client.enqueue(request("j1")).await.unwrap();
    client.enqueue(request("j2")).await.unwrap();
    let all = client.events(&EventFilter::default(), 10).await.unwrap();
    let cancelled: Vec<_> = all
        .events
        .iter()
        .map(|e| (e.job.as_str(), e.event.as_str(), e.by.as_str()))
        .collect();
    assert_eq!(
        cancelled,
        [("j1", "enqueue", "me"), ("j2", "enqueue", "me")]
    );
    assert_eq!(all.last, all.events.last().map(|event| event.id.clone()));
    let filter = EventFilter {
        job: Some(named("j1")),
        ..EventFilter::default()
    };
    let mut follower = client.follow_events(filter, all.last);
    let next = follower.next();
    let act = async {
        client.cancel(&named("j2")).await.unwrap();
        client.cancel(&named("j1")).await.unwrap();
    };
    let (next, ()) = tokio::join!(next, act);
    let next = next.unwrap();
    assert_eq!(
        (next.len(), next[0].job.as_str(), next[0].event.as_str()),
        (1, "j1", "error")
    );
}

async fn lines_are_followed_to_the_end(client: Client) {
    const LINES: usize = 900;
    client.enqueue(request("j")).await.unwrap();
    let mut follower = client.follow_log(&named("j")).await.unwrap();
    let run = async {
        let claimed = claim(&client, "t").await;
        for at in 0..LINES {
            let line = at.to_string();
            let lines = [("stdout", line.as_bytes())];
            client.broker().log(&claimed, &lines, None).await.unwrap();
        }
        client
            .broker()
            .complete(&claimed, b"1", b"", b"")
            .await
            .unwrap();
    };
    let follow = async {
        let mut followed = Vec::new();
        while let Some(lines) = follower.next().await.unwrap() {
            followed.extend(
                lines
                    .into_iter()
                    .map(|line| String::from_utf8(line.line).unwrap()),
            );
        }
        followed
    };
    let (followed, ()) = tokio::join!(follow, run);
    let all: Vec<_> = (0..LINES).map(|at| at.to_string()).collect();
    assert_eq!(followed, all);
    let kept = client.log_lines(&named("j")).await.unwrap();
    assert_eq!(kept.len(), LINES);
    let missing = client.follow_log(&named("nobody")).await;
    assert!(matches!(missing, Err(Error::JobNotFound { .. })));
}

async fn the_next_run_is_known(client: Client) {
    client.enqueue(request("j").retries(1)).await.unwrap();
    assert_eq!(client.next_run(&named("j")).await.unwrap(), None);
    let claimed = claim(&client, "t").await;
    let failure = Failure::new(FailureKind::Script, "no");
    let pause = Duration::from_secs(3600);
    client
        .broker()
        .fail(&claimed, &failure, b"", b"", pause)
        .await
        .unwrap();
    let now = client.broker().now().await.unwrap();
    let due = client.next_run(&named("j")).await.unwrap().unwrap();
    assert!(
        (now + 3_500_000..=now + 3_600_000).contains(&due),
        "{due} {now}"
    );
}

/// A server that is restarted does not end what follows it.
#[tokio::test(flavor = "multi_thread")]
async fn following_outlives_a_restart() {
    let Some(mut server) = RealServer::redis().append_only().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    client.enqueue(request("j1")).await.unwrap();
    let last = client
        .events(&EventFilter::default(), 1)
        .await
        .unwrap()
        .last;
    let mut follower = client.follow_events(EventFilter::default(), last);
    let next = tokio::spawn(async move { follower.next().await });
    server.kill9();
    server.start_again();
    eventually("the server takes jobs again", PATIENCE, async || {
        client.enqueue(request("j2")).await.is_ok().then_some(())
    })
    .await;
    let events = tokio::time::timeout(PATIENCE, next)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(events[0].job, "j2");
}
