//! Results of jobs that end together share a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use meshwork::protocol::bananas::{Client, Request, Worker, WorkerHandle};
use meshwork::runtime::JobContext;
use meshwork_model::name::JobId;
use meshwork_test_servers::calls::Calls;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::RealServer;
use tokio::sync::Semaphore;

use super::support::BOUND;

/// Jobs that run at the same time.
const JOBS: usize = 200;

/// Jobs that all hold on until they are let go.
struct Held {
    begun: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl Default for Held {
    fn default() -> Self {
        Self {
            begun: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
        }
    }
}

impl Held {
    async fn submit(&self, client: &Client) -> Vec<JobId> {
        let mut ids = Vec::new();
        for number in 0..JOBS {
            let request = Request::new("hold", &number).unwrap();
            ids.push(client.enqueue(request).await.unwrap());
        }
        ids
    }

    /// A worker that runs all of them.
    async fn worker(&self, client: &Client) -> WorkerHandle {
        let (begun, gate) = (Arc::clone(&self.begun), Arc::clone(&self.gate));
        let hold = move |number: usize, _: JobContext| {
            let (begun, gate) = (Arc::clone(&begun), Arc::clone(&gate));
            async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let room = gate.acquire().await.map_err(|error| error.to_string())?;
                room.forget();
                Ok::<_, String>(number)
            }
        };
        let worker = Worker::new(client).handle("hold", hold);
        let worker = worker.concurrency(JOBS).start().await.unwrap();
        eventually("all run", BOUND, async || {
            (self.begun.load(Ordering::SeqCst) == JOBS).then_some(())
        })
        .await;
        worker
    }
}

/// On a server of its own, for all calls are counted.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_end_together_are_told_in_a_few_calls() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    let held = Held::default();
    let ids = held.submit(&client).await;
    let worker = held.worker(&client).await;
    let calls = Calls::of(&server.url()).await.unwrap();
    held.gate.add_permits(JOBS);
    assert_eq!(worker.stop().await, 0);
    let made = calls.so_far();
    // One for each would be 200, and a few are made by the worker itself while it stops.
    assert!(made < 100, "{made} calls for {JOBS} ends");
    for (number, id) in ids.iter().enumerate() {
        let outcome = client.wait(id, BOUND).await.unwrap();
        assert_eq!(outcome.result, Some(number.to_string()));
    }
}

/// A refused result does not affect others of its call: they ran once.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_refused_spoils_no_other() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let client = Client::open(&server.url()).await.unwrap();
    let held = Held::default();
    let ids = held.submit(&client).await;
    let worker = held.worker(&client).await;
    // None of them may be published.
    let (refused, others) = ids.split_last().unwrap();
    let channels = others
        .iter()
        .map(|id| format!("&bananas:result:notify:{id}"));
    let user = ["ACL", "SETUSER", "default", "resetchannels"].map(str::to_owned);
    let user: Vec<_> = user.into_iter().chain(channels).collect();
    let user: Vec<_> = user.iter().map(String::as_str).collect();
    server.say::<()>(&user).unwrap();
    held.gate.add_permits(JOBS);
    let status = async |id: &JobId| client.get(id).await.unwrap().word("status");
    for id in others {
        eventually("the subscriber is notified", BOUND, async || {
            (status(id).await == "completed").then_some(())
        })
        .await;
    }
    assert_eq!(held.begun.load(Ordering::SeqCst), JOBS);
    assert_eq!(status(refused).await, "pending");
    // Nothing of the refused call was written.
    let result: i64 = server
        .say(&["EXISTS", &format!("bananas:result:{refused}")])
        .unwrap();
    assert_eq!(result, 0);
    worker.stop().await;
}
