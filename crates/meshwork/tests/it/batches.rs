//! Batches with the client and a worker, on a real Redis and on an embedded engine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use meshwork::runtime::{JobContext, handler};
use meshwork::{BatchState, Client, Error, JobRequest, Worker};
use meshwork_model::batch::BatchEnd;

/// Timeout: long enough for a busy machine, short enough to detect a hang.
const PATIENCE: Duration = Duration::from_secs(60);

fn request<T: serde::Serialize>(handler: &str, payload: &T) -> JobRequest {
    let request = JobRequest::new(handler.parse().unwrap(), "");
    request.payload(payload).unwrap()
}

/// A handler that adds as many jobs to its own batch as its payload says, each with one less to add; and one
/// that is called back.
fn worker(client: &Client, ends: &Arc<Mutex<Vec<BatchEnd>>>) -> Worker {
    let grow = async |more: u32, context: JobContext| {
        let batch = context.batch.ok_or("the job is in no batch")?;
        let children = (0..more).map(|_| request("grow", &(more - 1)));
        let ids = batch.add(children).await.map_err(|e| e.to_string())?;
        Ok::<_, String>(ids.len())
    };
    let ends = Arc::clone(ends);
    let end = move |(): (), context: JobContext| {
        let ends = Arc::clone(&ends);
        async move {
            ends.lock().unwrap().extend(context.batch_end);
            Ok::<_, String>(context.batch.is_some())
        }
    };
    Worker::new(client)
        .runtime("grow".parse().unwrap(), handler(grow))
        .runtime("end".parse().unwrap(), handler(end))
}

/// Jobs add to their sealed batch while they run; when all of them have ended the callback is called once.
async fn jobs_add_to_their_own_batch(client: Client) {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let worker = worker(&client, &ends).start().await.unwrap();
    let done = request("end", &());
    let id = done.clone().build().unwrap().id;
    let batch = client
        .batch()
        .name("a tree")
        .on_done(done)
        .open()
        .await
        .unwrap();
    batch.add([request("grow", &3)]).await.unwrap();
    batch.seal().await.unwrap();
    let mut seen = 0;
    let status = batch
        .wait(PATIENCE, |status| seen = status.total)
        .await
        .unwrap();
    // 1 + 3 + 3·2 + 3·2·1
    assert_eq!(
        (status.state, status.total, status.succeeded),
        (BatchState::Succeeded, 16, 16)
    );
    assert_eq!((status.name.as_str(), seen), ("a tree", 16));
    let called = client.result(&id, PATIENCE).await.unwrap();
    assert_eq!(called.output.as_deref(), Some(&b"false"[..]));
    let ends = ends.lock().unwrap().clone();
    assert_eq!(ends.len(), 1);
    assert_eq!(
        (ends[0].batch.as_str(), ends[0].why.as_str()),
        (batch.id().as_str(), "done")
    );
    assert_eq!(
        (ends[0].total, ends[0].succeeded, ends[0].failed),
        (16, 16, 0)
    );
    worker.stop().await;
}

/// A refusal names the batch; a repeated call changes nothing.
async fn what_a_batch_does_not_take(client: Client) {
    let nowhere = client.batch_of("nowhere".parse().unwrap());
    let added = nowhere.add([request("grow", &1)]).await;
    assert!(matches!(added, Err(Error::BatchNotFound { .. })));
    assert!(matches!(
        nowhere.status().await,
        Err(Error::BatchNotFound { .. })
    ));
    let open = || {
        client
            .batch()
            .id("b".parse().unwrap())
            .on_done(request("end", &()))
    };
    let batch = open().open().await.unwrap();
    let again = open().open().await.unwrap();
    let job = request("grow", &0).id("j".parse().unwrap());
    for batch in [&batch, &again] {
        batch.add([job.clone()]).await.unwrap();
    }
    assert_eq!(batch.status().await.unwrap().total, 1);
    batch.seal().await.unwrap();
    let late = batch.add([request("grow", &0)]).await.unwrap_err();
    assert!(
        late.to_string()
            .contains("batch b does not take it: it is sealed"),
        "{late}"
    );
    assert!(batch.cancel("no more").await.unwrap());
    let status = client.batch_status(batch.id()).await.unwrap();
    assert_eq!((status.state, status.failed), (BatchState::Cancelled, 1));
    assert!(!batch.cancel("no more").await.unwrap());
    assert!(matches!(batch.seal().await, Err(Error::BatchClosed { .. })));
    let twice = client.batch().on_done(job.clone()).open().await;
    assert!(matches!(twice, Err(Error::JobExists { .. })));
    let with_input = client
        .batch()
        .on_done(request("end", &()).input("x"))
        .open()
        .await;
    assert!(matches!(with_input, Err(Error::InvalidBatch(_))));
    let waited = client
        .batch()
        .open()
        .await
        .unwrap()
        .wait(Duration::ZERO, |_| {})
        .await;
    assert!(matches!(waited, Err(Error::BatchWaitTimeout { .. })));
}

crate::engines::on_each_engine! {
    jobs_add_to_their_own_batch,
    what_a_batch_does_not_take,
}
