//! Which of two workers takes a job: routes with weights, and jobs for other routes on lists without one.

use meshwork::protocol::bananas::{Foreign, Request, Worker};
use meshwork::runtime::JobContext;
use meshwork_model::bananas::ClientVariant;
use meshwork_model::route::Priority;
use meshwork_test_servers::eventually;
use tokio::sync::mpsc;

use super::support::{BOUND, Ground};

/// Three of four claims look at the one route first, so that the other has its share.
#[tokio::test(flavor = "multi_thread")]
async fn routes_with_weights_share() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let mut ids = Vec::new();
    for route in ["gpu", "eu"].repeat(12) {
        let request = Request::raw("note", &format!("\"{route}\"")).route(route.parse().unwrap());
        ids.push(ground.client.enqueue(request).await.unwrap());
    }
    let (sender, mut noted) = mpsc::unbounded_channel();
    let note = move |route: String, _: JobContext| {
        let sender = sender.clone();
        async move { sender.send(route).map_err(|error| error.to_string()) }
    };
    let worker = Worker::new(&ground.client)
        .handle("note", note)
        .concurrency(1);
    let worker = worker
        .routes("gpu=3,eu=1".parse().unwrap())
        .start()
        .await
        .unwrap();
    for id in &ids {
        assert!(ground.client.wait(id, BOUND).await.unwrap().succeeded);
    }
    worker.stop().await;
    let mut first = Vec::new();
    while first.len() < 12 {
        first.push(noted.recv().await.unwrap());
    }
    let gpu = first.iter().filter(|route| *route == "gpu").count();
    assert_eq!(gpu, 9, "{first:?}");
}

/// The SDKs write a route only into the record. Without a worker of Meshwork for the route, the job runs where it is,
/// or stays; with one, it moves to the list of its route.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_for_another_route_is_run_or_left_or_moved() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let sdk = ground.client.clone().with_variant(ClientVariant::Python);
    let gpu = || Request::raw("echo", "1").route("gpu".parse().unwrap());
    let worker = ground.worker().start().await.unwrap();
    let id = sdk.enqueue(gpu()).await.unwrap();
    assert!(sdk.wait(&id, BOUND).await.unwrap().succeeded);
    worker.stop().await;

    let worker = ground
        .worker()
        .foreign(Foreign::Leave)
        .start()
        .await
        .unwrap();
    let left = sdk.enqueue(gpu()).await.unwrap();
    let own = sdk.enqueue(Request::raw("echo", "2")).await.unwrap();
    assert!(sdk.wait(&own, BOUND).await.unwrap().succeeded);
    assert_eq!(sdk.result(&left).await.unwrap(), None);

    let gpus = ground.worker().routes("gpu".parse().unwrap());
    let gpus = gpus.start().await.unwrap();
    assert!(sdk.wait(&left, BOUND).await.unwrap().succeeded);
    worker.stop().await;
    gpus.stop().await;
    ground.quiet().await;
}

/// However many are left before it; and these stay in their order.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_to_others_holds_up_nothing_behind_it() {
    let Some(ground) = Ground::open().await else {
        return;
    };
    let sdk = ground.client.clone().with_variant(ClientVariant::Python);
    let gpu = || Request::raw("echo", "1").route("gpu".parse().unwrap());
    let mut left = Vec::new();
    for _ in 0..300 {
        left.push(sdk.enqueue(gpu()).await.unwrap());
    }
    let mut own = Vec::new();
    for _ in 0..5 {
        own.push(sdk.enqueue(Request::raw("echo", "2")).await.unwrap());
    }
    let worker = ground.worker().foreign(Foreign::Leave).concurrency(2);
    let worker = worker.start().await.unwrap();
    // One by one past what is left, a second each, these would take two minutes and more.
    for id in &own {
        assert!(sdk.wait(id, BOUND).await.unwrap().succeeded);
    }
    let low = Request::raw("echo", "3").priority(Priority::Low);
    let low = sdk.enqueue(low).await.unwrap();
    assert!(sdk.wait(&low, BOUND).await.unwrap().succeeded);
    let waiting = eventually("none is on its way", BOUND, async || {
        let waiting: Vec<String> = ground
            .say(&["LRANGE", "bananas:queue:normal", "0", "-1"])
            .await;
        (waiting.len() == left.len()).then_some(waiting)
    })
    .await;
    // What was taken before it was seen that it is left goes back as the last, no more.
    let in_order = waiting
        .iter()
        .rev()
        .skip_while(|id| **id != left[2].as_str());
    let in_order: Vec<_> = in_order.take(298).collect();
    assert_eq!(in_order.len(), 298);
    assert!(
        in_order
            .iter()
            .zip(&left[2..])
            .all(|(is, id)| is.as_str() == id.as_str())
    );

    let gpus = ground.worker().routes("gpu".parse().unwrap());
    let gpus = gpus.start().await.unwrap();
    for id in &left {
        assert!(sdk.wait(id, BOUND).await.unwrap().succeeded);
    }
    // Nothing is left: it listens there again.
    let again = sdk.enqueue(Request::raw("echo", "4")).await.unwrap();
    assert!(sdk.wait(&again, BOUND).await.unwrap().succeeded);
    worker.stop().await;
    gpus.stop().await;
    ground.quiet().await;
}
