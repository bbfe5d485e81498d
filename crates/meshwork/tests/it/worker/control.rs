//! Requests to stop, pushed by hand, and old lists that a worker takes from while its type migrates. Called by
//! the tests of the worker.

use std::time::Duration;

use meshwork::{Client, Error, JobRequest};
use meshwork_model::name::JobId;
use meshwork_model::outcome::Report;
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use tokio::time::Instant;

use super::{PATIENCE, SHORT, worker};
use crate::worker_support::{Gate, Scripted, osis, raw};

const CONTROL: &str = "hero:q:ctl:type:osis";
/// A request is heard within a second, and the run of a test ends at once: with time for a busy machine.
const SOON: Duration = Duration::from_secs(15);

async fn is_stopped(client: &Client, id: &JobId) {
    let failed = client.result(id, PATIENCE).await.unwrap_err();
    let stopped = |message: &str| message == "stopped_by_request";
    assert!(
        matches!(&failed, Error::Failed { message, .. } if stopped(message)),
        "{failed}"
    );
    let job = client.status(id).await.unwrap();
    assert_eq!((job.status(), job.dead), (Some(Status::Error), None));
}

async fn asked_for(client: &Client, queue: &str) -> usize {
    raw(client, &["LLEN", queue]).await
}

pub(crate) async fn a_bare_id_stops_a_run_among_ten_workers(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let mut workers = Vec::new();
    for _ in 0..10 {
        workers.push(
            worker(&client, &runner)
                .concurrency(1)
                .start()
                .await
                .unwrap(),
        );
    }
    let jobs: Vec<_> = (0..10)
        .map(|_| JobRequest::new(osis(), "x").build().unwrap())
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    gate.wait_for(10).await;
    let (id, pushed) = (&jobs[3].id, Instant::now());
    let _: usize = raw(&client, &["LPUSH", CONTROL, id.as_str()]).await;
    is_stopped(&client, id).await;
    assert!(pushed.elapsed() < SOON, "{:?}", pushed.elapsed());
    assert_eq!(asked_for(&client, CONTROL).await, 0);
    gate.open();
    for job in jobs.iter().filter(|job| job.id != *id) {
        client.result(&job.id, PATIENCE).await.unwrap();
    }
    for worker in workers {
        worker.stop().await;
    }
}

pub(crate) async fn requests_for_what_does_not_run_here_do_no_harm(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let one = worker(&client, &runner).start().await.unwrap();
    let other = meshwork::Worker::new(&client).runtime("sal".parse().unwrap(), runner.clone());
    let other = other.start().await.unwrap();
    let sal = JobRequest::new("sal".parse().unwrap(), "x");
    let elsewhere = client.enqueue(sal).await.unwrap();
    gate.wait_for(1).await;
    let waits = JobRequest::new(osis(), "x").instance("nobody".parse().unwrap());
    let waits = client.enqueue(waits).await.unwrap();
    for id in ["unknown", elsewhere.as_str(), waits.as_str()] {
        let _: usize = raw(&client, &["LPUSH", CONTROL, id]).await;
    }
    is_stopped(&client, &waits).await;
    // What others run is left for them, and they do not listen to this queue.
    eventually("one request is left", PATIENCE, async || {
        (asked_for(&client, CONTROL).await == 1).then_some(())
    })
    .await;
    assert_eq!(
        client.status(&elsewhere).await.unwrap().status(),
        Some(Status::Started)
    );
    let _: usize = raw(
        &client,
        &["LPUSH", "hero:q:ctl:type:sal", elsewhere.as_str()],
    )
    .await;
    is_stopped(&client, &elsewhere).await;
    one.stop().await;
    other.stop().await;
}

pub(crate) async fn a_worker_is_stopped_by_its_own_names(client: Client) {
    let gate = Gate::new();
    let one = worker(&client, &Scripted::gated(&gate))
        .instance("1".parse().unwrap())
        .legacy_ids(["old_1".parse().unwrap()])
        .start()
        .await
        .unwrap();
    let queues = [
        "hero:q:ctl:type:osis:group:default:inst:1",
        "hero:stop_queue:old_1",
    ];
    for (n, queue) in queues.into_iter().enumerate() {
        let id = client.enqueue(JobRequest::new(osis(), "x")).await.unwrap();
        gate.wait_for(n + 1).await;
        let _: usize = raw(&client, &["LPUSH", queue, id.as_str()]).await;
        is_stopped(&client, &id).await;
    }
    one.stop().await;
}

pub(crate) async fn a_stop_that_control_missed_comes_with_the_renewal(client: Client) {
    let gate = Gate::new();
    let runner = Scripted::gated(&gate);
    let one = worker(&client, &runner).lease(SHORT).start().await.unwrap();
    let id = client.enqueue(JobRequest::new(osis(), "x")).await.unwrap();
    gate.wait_for(1).await;
    let key = format!("hero:job:{id}");
    let _: usize = raw(&client, &["HSET", &key, "mw_stop", "stopped_by_request"]).await;
    is_stopped(&client, &id).await;
    one.stop().await;
}

async fn legacy(client: &Client, list: &str, id: &str) {
    let key = format!("hero:job:{id}");
    let _: usize = raw(
        client,
        &["HSET", &key, "script", id, "status", "dispatched"],
    )
    .await;
    let _: usize = raw(client, &["LPUSH", list, id]).await;
}

async fn answer(client: &Client, id: &str) -> String {
    let mut conn = client.broker().conn().dedicated().await.unwrap();
    let mut pop = redis::cmd("BLPOP");
    pop.arg(format!("hero:reply:{id}")).arg(PATIENCE.as_secs());
    let (_, reply): (String, String) = pop.query_async(&mut conn).await.unwrap();
    reply
}

/// True if a listener of an old list is registered.
async fn is_listened(client: &Client, list: &str) -> bool {
    let members: Vec<String> = raw(client, &["ZRANGE", "hero:q:feeds", "0", "-1"]).await;
    members
        .iter()
        .any(|member| member.ends_with(&format!(" {list}")))
}

pub(crate) async fn old_lists_are_taken_while_their_type_migrates(client: Client) {
    let runner = Scripted::new(|run| match run.job.attempt {
        1 if run.job.retries > 0 => Report::failed(meshwork_model::outcome::Failure::timeout()),
        _ => Report::done(run.job.script.clone()),
    });
    let one = worker(&client, &runner)
        .legacy_ids(["old_1".parse().unwrap()])
        .start()
        .await
        .unwrap();
    let lists = [
        "hero:job:actor_queue:osis",
        "hero:work_queue:old_1",
        "hero:job:old_1",
        "elsewhere:old_1",
    ];
    for (n, list) in lists.iter().enumerate() {
        legacy(&client, list, &format!("l{n}")).await;
    }
    client.run(JobRequest::new(osis(), "x")).await.unwrap();
    assert_eq!(runner.runs(), 1, "old lists are left alone");
    let set = "canonical elsewhere:{worker_id} 30000";
    let _: usize = raw(&client, &["HSET", "hero:q:config", "migration:osis", set]).await;
    for n in 0..lists.len() {
        assert_eq!(answer(&client, &format!("l{n}")).await, format!("l{n}"));
    }
    // Now somebody waits there.
    eventually("it listens there", PATIENCE, async || {
        is_listened(&client, lists[1]).await.then_some(())
    })
    .await;
    legacy(&client, lists[1], "fed").await;
    assert_eq!(answer(&client, "fed").await, "fed");
    // What runs again does so from a canonical queue.
    let _: usize = raw(
        &client,
        &[
            "HSET",
            "hero:job:again",
            "retries",
            "1",
            "mw_backoff_ms",
            "10",
        ],
    )
    .await;
    legacy(&client, lists[0], "again").await;
    assert_eq!(answer(&client, "again").await, "again");
    let queue: String = raw(&client, &["HGET", "hero:job:again", "mw_queue"]).await;
    assert_eq!(queue, "hero:q:work:type:osis");
    let _: usize = raw(&client, &["HDEL", "hero:q:config", "migration:osis"]).await;
    eventually("it listens there no more", PATIENCE, async || {
        (!is_listened(&client, lists[1]).await).then_some(())
    })
    .await;
    legacy(&client, lists[1], "late").await;
    client.run(JobRequest::new(osis(), "x")).await.unwrap();
    let left: usize = raw(&client, &["LLEN", lists[1]]).await;
    assert_eq!(left, 1);
    one.stop().await;
}
