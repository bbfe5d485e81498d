//! Slots of a worker whose handlers take long. Called by the tests of the worker.

use std::sync::Arc;

use meshwork::runtime::JobContext;
use meshwork::{Client, JobRequest, Worker};
use meshwork_model::route::Priority;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use tokio::sync::{Semaphore, watch};

use super::PATIENCE;
use crate::worker_support::raw;

const NAME: &str = "slow";

/// A worker sends results in parts; a free slot does not wait until a part is complete.
pub(crate) async fn slow_handlers_keep_all_slots_full(client: Client) {
    for slots in [1_usize, 2, 3, 10, 50] {
        let (starts, permits) = (watch::Sender::new(0), Arc::new(Semaphore::new(0)));
        let handler = {
            let (starts, permits) = (starts.clone(), Arc::clone(&permits));
            move |_: String, _: JobContext| {
                starts.send_modify(|starts| *starts += 1);
                let permits = Arc::clone(&permits);
                async move {
                    let permit = permits.acquire().await;
                    permit.map_err(|closed| closed.to_string())?.forget();
                    Ok::<_, String>(())
                }
            }
        };
        let ends = [1, 1, slots.div_ceil(2), slots.div_ceil(3), 1, slots];
        let jobs: Vec<_> = (0..slots + ends.iter().sum::<usize>())
            .map(|_| JobRequest::new(NAME.parse().unwrap(), "\"x\""))
            .map(|request| request.build().unwrap())
            .collect();
        client.enqueue_built(&jobs).await.unwrap();
        let worker = Worker::new(&client).handle(NAME, handler);
        let worker = worker.concurrency(slots).start().await.unwrap();
        let mut due = slots;
        for count in [&[0], ends.as_slice()].concat() {
            permits.add_permits(count);
            due += count;
            let mut seen = starts.subscribe();
            let started = seen.wait_for(|starts| *starts == due);
            let started = tokio::time::timeout(PATIENCE, started).await;
            assert!(started.is_ok(), "{due} starts with {slots} slots");
        }
        permits.add_permits(slots);
        for job in &jobs {
            let job = client.result(&job.id, PATIENCE).await.unwrap();
            assert_eq!((job.attempt, job.lost), (1, 0));
        }
        worker.stop().await;
    }
}

/// A worker of many types has at most 64 blocking reads, and few other connections; claims find jobs of the other queues.
#[tokio::test(flavor = "multi_thread")]
async fn blocking_reads_of_many_queues_are_bounded() {
    let Some(server) = RealServer::redis().start() else {
        return; // reported as skipped
    };
    let client = Client::open(&server.url()).await.unwrap();
    let names: Vec<_> = (0..40).map(|number| format!("type-{number:02}")).collect();
    let mut worker = Worker::new(&client);
    for name in &names {
        worker = worker.handle(name, async |_: String, _: JobContext| Ok::<_, String>(()));
    }
    let worker = worker.start().await.unwrap();
    worker.registered().await;
    let reads = async || {
        let clients: String = raw(&client, &["CLIENT", "LIST"]).await;
        let of = |command: &str| clients.matches(&format!(" cmd={command} ")).count();
        (of("blmove"), clients.lines().count())
    };
    let all = async || (reads().await.0 == 64).then_some(());
    eventually("the queues are read", PATIENCE, all).await;
    for name in [&names[0], &names[39]] {
        for priority in [Priority::Low, Priority::Normal, Priority::High] {
            let job = JobRequest::new(name.parse().unwrap(), "\"x\"").priority(priority);
            client.run(job).await.unwrap();
        }
    }
    let (reads, connections) = reads().await;
    assert!(
        reads <= 64 && connections <= 64 + 6,
        "{reads} of {connections}"
    );
    worker.stop().await;
}
