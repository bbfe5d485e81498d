//! Reasons of a wait, and pages of jobs by state: on a real Redis and on an embedded engine.

use std::time::Duration;

use meshwork::runtime::JobContext;
use meshwork::{Client, Error, JobRequest, PageCursor, PagedJobs, WaitReason, Worker};
use meshwork_model::job::{Job, NewJob};
use meshwork_model::name::{JobId, ScriptType};
use meshwork_model::route::Priority;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;

/// Timeout on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

crate::engines::on_each_engine! {
    a_job_knows_why_it_waits,
    a_job_knows_its_workers,
    queued_jobs_come_by_pages,
    delayed_running_and_ended_jobs_come_by_pages,
    a_cursor_of_another_list_is_refused,
}

fn request(id: &str) -> JobRequest {
    JobRequest::new("osis".parse().unwrap(), "1").id(named(id))
}

fn named(id: &str) -> JobId {
    id.parse().unwrap()
}

fn osis(client: &Client) -> String {
    let keys = client.broker().keys();
    keys.work_queue_type(&"osis".parse().unwrap())
}

async fn why(client: &Client, id: &str) -> Vec<WaitReason> {
    client.why_of(&named(id)).await.unwrap()
}

async fn a_job_knows_why_it_waits(client: Client) {
    let queue = osis(&client);
    client.enqueue(request("a")).await.unwrap();
    client
        .enqueue(request("h").priority(Priority::High))
        .await
        .unwrap();
    let timed = request("t").start_timeout(Duration::from_secs(3600));
    client
        .enqueue(timed.delay(Duration::from_secs(60)))
        .await
        .unwrap();
    client
        .enqueue(request("z").depends_on(named("a")).depends_on(named("h")))
        .await
        .unwrap();
    let no_worker = |queue: &str| WaitReason::NoWorker {
        queue: queue.to_owned(),
    };
    let position = |ahead, higher| WaitReason::Position {
        queue: queue.clone(),
        ahead,
        exact: true,
        higher,
    };
    assert_eq!(why(&client, "a").await, [no_worker(&queue), position(0, 1)]);
    client.enqueue(request("b")).await.unwrap();
    assert_eq!(why(&client, "b").await[1], position(1, 1));
    let reasons = why(&client, "t").await;
    let until = reasons
        .iter()
        .any(|reason| matches!(reason, WaitReason::StartTimeout { .. }));
    assert!(
        matches!(reasons[0], WaitReason::Time { .. }) && until,
        "{reasons:?}"
    );
    assert!(
        !reasons
            .iter()
            .any(|reason| matches!(reason, WaitReason::Position { .. }))
    );
    let waits = |id: &str| WaitReason::Prerequisite {
        id: id.to_owned(),
        status: Some("dispatched".to_owned()),
        state: Some("queued".to_owned()),
    };
    assert_eq!(why(&client, "z").await[..2], [waits("a"), waits("h")]);
    client.pause(&queue).await.unwrap();
    assert_eq!(
        why(&client, "a").await[0],
        WaitReason::Paused {
            queue: queue.clone()
        }
    );
    client.cancel(&named("a")).await.unwrap();
    assert_eq!(why(&client, "a").await, []);
    let error = client.why_of(&named("none")).await.unwrap_err();
    assert!(matches!(error, Error::JobNotFound { .. }), "{error}");
}

async fn a_job_knows_its_workers(client: Client) {
    let held = async |_: (), _: JobContext| {
        std::future::pending::<()>().await;
        Ok::<_, String>(())
    };
    let queue = client
        .broker()
        .keys()
        .work_queue_type(&"v".parse().unwrap());
    let worker = Worker::new(&client).handle("v", held).concurrency(1);
    let worker = worker
        .shutdown_timeout(Duration::ZERO)
        .lease(Duration::from_secs(1));
    let worker = worker.start().await.unwrap();
    worker.registered().await;
    let job = |id: &str| JobRequest::new("v".parse().unwrap(), "null").id(named(id));
    client.enqueue(job("a")).await.unwrap();
    eventually("the first job runs", PATIENCE, async || {
        let job = client.status(&named("a")).await.unwrap();
        (job.status == "started").then_some(())
    })
    .await;
    assert_eq!(why(&client, "a").await, []);
    worker.quiet();
    client.enqueue(job("b")).await.unwrap();
    let names = eventually("the worker is quiet", PATIENCE, async || {
        let reasons = why(&client, "b").await;
        reasons.into_iter().find_map(|reason| match reason {
            WaitReason::QuietWorkers { queue: of, workers } if of == queue => Some(workers),
            _ => None,
        })
    })
    .await;
    assert_eq!(names.len(), 1);
    worker.stop().await;
    let reasons = why(&client, "b").await;
    assert!(
        reasons.contains(&WaitReason::NoWorker { queue }),
        "{reasons:?}"
    );
}

fn ids(page: &PagedJobs) -> Vec<&str> {
    page.jobs.iter().map(|one| one.job.id.as_str()).collect()
}

/// Reads all pages, each by the text of the cursor before it.
async fn all(
    read: impl AsyncFn(Option<&PageCursor>) -> Result<PagedJobs, Error>,
) -> Vec<(Job, Option<u64>)> {
    let (mut jobs, mut cursor) = (Vec::new(), None::<PageCursor>);
    loop {
        let page = read(cursor.as_ref()).await.unwrap();
        jobs.extend(page.jobs.into_iter().map(|one| (one.job, one.at_ms)));
        match page.next {
            Some(next) => cursor = Some(next.to_string().parse().unwrap()),
            None => return jobs,
        }
    }
}

async fn queued_jobs_come_by_pages(client: Client) {
    let queue = osis(&client);
    for (id, priority) in [
        ("n1", Priority::Normal),
        ("l1", Priority::Low),
        ("h1", Priority::High),
        ("n2", Priority::Normal),
        ("h2", Priority::High),
    ] {
        client
            .enqueue(request(id).priority(priority))
            .await
            .unwrap();
    }
    for limit in [1, 2, 3, 10] {
        let jobs = all(async |cursor| client.queued_page(&queue, cursor, limit).await).await;
        let ids: Vec<_> = jobs.iter().map(|(job, _)| job.id.as_str()).collect();
        assert_eq!(ids, ["h1", "h2", "n1", "n2", "l1"], "{limit}");
    }
    let high = format!("{queue}:prio:0");
    let page = client.queued_page(&high, None, 10).await.unwrap();
    assert_eq!((ids(&page), &page.next), (vec!["h1", "h2"], &None));
    // A cancelled job is on no page, although a list may still have its id.
    client.cancel(&named("n1")).await.unwrap();
    let page = client.queued_page(&queue, None, 10).await.unwrap();
    assert_eq!(ids(&page), ["h1", "h2", "n2", "l1"]);
}

async fn delayed_running_and_ended_jobs_come_by_pages(client: Client) {
    let (queue, of_type): (_, ScriptType) = (osis(&client), "other".parse().unwrap());
    let other = |id: &str| JobRequest::new(of_type.clone(), "1").id(named(id));
    let of_other = client.broker().keys().work_queue_type(&of_type);
    for n in 1..=3 {
        let delay = Duration::from_secs(100 * n);
        client
            .enqueue(request(&format!("d{n}")).delay(delay))
            .await
            .unwrap();
        client
            .enqueue(other(&format!("o{n}")).delay(delay))
            .await
            .unwrap();
    }
    for limit in [1, 2, 10] {
        let jobs = all(async |cursor| client.delayed_page(Some(&queue), cursor, limit).await).await;
        let ids: Vec<_> = jobs.iter().map(|(job, _)| job.id.as_str()).collect();
        assert_eq!(ids, ["d1", "d2", "d3"], "{limit}");
        assert!(
            jobs.windows(2).all(|pair| pair[0].1 < pair[1].1),
            "{jobs:?}"
        );
        let jobs = all(async |cursor| client.delayed_page(None, cursor, limit).await).await;
        assert_eq!(jobs.len(), 6, "{limit}");
    }
    for id in ["e1", "e2", "e3"] {
        client.enqueue(other(id)).await.unwrap();
        client.cancel(&named(id)).await.unwrap();
    }
    for limit in [1, 2, 10] {
        let jobs =
            all(async |cursor| client.ended_page(Some(&of_other), cursor, limit).await).await;
        let mut ids: Vec<_> = jobs.iter().map(|(job, _)| job.id.as_str()).collect();
        assert!(
            jobs.windows(2).all(|pair| pair[0].1 >= pair[1].1),
            "{jobs:?}"
        );
        ids.sort_unstable();
        assert_eq!(ids, ["e1", "e2", "e3"], "{limit}");
        assert!(
            all(async |cursor| client.ended_page(Some(&queue), cursor, limit).await)
                .await
                .is_empty()
        );
    }
    assert!(
        all(async |cursor| client.running_page(None, cursor, 1).await)
            .await
            .is_empty()
    );
}

async fn a_cursor_of_another_list_is_refused(client: Client) {
    for id in ["a", "b"] {
        client.enqueue(request(id)).await.unwrap();
    }
    let page = client.queued_page(&osis(&client), None, 1).await.unwrap();
    let cursor = page.next.unwrap();
    let error = client
        .delayed_page(None, Some(&cursor), 1)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Cursor(_)), "{error}");
    for limit in [1_001, usize::MAX] {
        let error = client.ended_page(None, None, limit).await.unwrap_err();
        assert!(error.to_string().contains("1000"), "{error}");
    }
}

/// Number of commands that the server has processed.
async fn commands(url: &str) -> u64 {
    let server = redis::Client::open(url).unwrap();
    let mut conn = server.get_multiplexed_async_connection().await.unwrap();
    let info: String = redis::cmd("INFO")
        .arg("stats")
        .query_async(&mut conn)
        .await
        .unwrap();
    let count = info
        .lines()
        .find_map(|line| line.strip_prefix("total_commands_processed:"));
    count.unwrap().trim().parse().unwrap()
}

/// The number of commands of each read is the same with 100 and with 10,000 stored jobs.
#[tokio::test(flavor = "multi_thread")]
async fn reads_send_as_many_commands_with_many_jobs() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    let (queue, mut counts) = (osis(&client), Vec::new());
    for (from, until) in [(0, 100), (100, 10_000)] {
        let job = |n: usize, delayed: bool| -> NewJob {
            let id = format!("{}{n}", if delayed { "d" } else { "q" });
            let request = request(&id);
            match delayed {
                true => request.delay(Duration::from_secs(3600)).build().unwrap(),
                false => request.build().unwrap(),
            }
        };
        let jobs: Vec<_> = (from..until)
            .flat_map(|n| [job(n, false), job(n, true)])
            .collect();
        for chunk in jobs.chunks(500) {
            client.broker().enqueue(chunk).await.unwrap();
        }
        let before = commands(&server.url()).await;
        client.why_of(&named("q50")).await.unwrap();
        client.queued_page(&queue, None, 20).await.unwrap();
        client.delayed_page(Some(&queue), None, 20).await.unwrap();
        client.running_page(Some(&queue), None, 20).await.unwrap();
        client.ended_page(Some(&queue), None, 20).await.unwrap();
        counts.push(commands(&server.url()).await - before);
    }
    assert_eq!(counts[0], counts[1]);
}
