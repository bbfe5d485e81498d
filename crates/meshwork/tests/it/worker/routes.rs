//! Routing keys on native jobs: called by the tests of the worker.

use std::sync::{Arc, Mutex};

use meshwork::{Client, JobRequest, Worker};
use meshwork_model::outcome::Report;
use meshwork_model::route::Priority;
use meshwork_model::route::bindings::Bindings;

use super::PATIENCE;
use crate::worker_support::{Scripted, osis};

type Log = Arc<Mutex<Vec<String>>>;

/// A worker that notes which scripts it runs, after its own name.
fn noting(client: &Client, routes: &str, log: &Log) -> Worker {
    let (name, log) = (routes.to_owned(), Arc::clone(log));
    let runner = Scripted::new(move |run| {
        let line = format!("{name} {}", String::from_utf8_lossy(&run.job.script));
        log.lock().unwrap().push(line);
        Report::done("")
    });
    let worker = Worker::new(client).runtime(osis(), runner as _);
    worker.routes(routes.parse().unwrap()).concurrency(1)
}

fn job(route: &str, script: &str, priority: Priority) -> JobRequest {
    let request = JobRequest::new(osis(), script).priority(priority);
    request.route(&route.parse().unwrap())
}

async fn submit(client: &Client, jobs: impl IntoIterator<Item = JobRequest>) {
    let jobs: Vec<_> = jobs.into_iter().map(|job| job.build().unwrap()).collect();
    client.enqueue_built(&jobs).await.unwrap();
    for job in jobs {
        client.result(&job.id, PATIENCE).await.unwrap();
    }
}

/// The three workers of Bananas: for the GPU, for mail, and one that helps the first out.
pub(crate) async fn each_route_has_its_workers(client: Client) {
    let log = Log::default();
    let gpu = noting(&client, "gpu", &log).start().await.unwrap();
    let mail = noting(&client, "email", &log).start().await.unwrap();
    let normal = Priority::Normal;
    let jobs = [job("gpu", "image", normal), job("email", "letter", normal)];
    submit(&client, jobs).await;
    let done = std::mem::take(&mut *log.lock().unwrap());
    assert!(done.contains(&"gpu image".to_owned()) && done.contains(&"email letter".to_owned()));
    // Nobody takes what is for no route until there is a worker for it.
    let plain = JobRequest::new(osis(), "plain").build().unwrap();
    client
        .enqueue_built(std::slice::from_ref(&plain))
        .await
        .unwrap();
    submit(&client, [job("gpu", "another", normal)]).await;
    assert_eq!(*log.lock().unwrap(), ["gpu another"]);
    gpu.stop().await;
    let helper = noting(&client, "default,gpu", &log).start().await.unwrap();
    client.result(&plain.id, PATIENCE).await.unwrap();
    submit(&client, [job("gpu", "third", normal)]).await;
    let expected = ["gpu another", "default,gpu plain", "default,gpu third"];
    assert_eq!(*log.lock().unwrap(), expected);
    mail.stop().await;
    helper.stop().await;
}

/// Route by route, and within each what is urgent first.
pub(crate) async fn routes_come_one_after_the_other(client: Client) {
    let log = Log::default();
    let mut jobs = Vec::new();
    for route in ["default", "gpu"] {
        for priority in [Priority::Low, Priority::Normal, Priority::High] {
            jobs.push(job(route, &format!("{route}-{priority}"), priority));
        }
    }
    let worker = async {
        // All are there before it looks.
        while client.queues().await.unwrap().len() < 6 {
            tokio::task::yield_now().await;
        }
        noting(&client, "gpu,default", &log).start().await.unwrap()
    };
    let (worker, ()) = tokio::join!(worker, submit(&client, jobs));
    let expected = [
        "gpu-high",
        "gpu-normal",
        "gpu-low",
        "default-high",
        "default-normal",
        "default-low",
    ];
    let expected = expected.map(|script| format!("gpu,default {script}"));
    assert_eq!(*log.lock().unwrap(), expected);
    worker.stop().await;
}

/// Three of four claims look at the one first, so that the other has its share.
pub(crate) async fn routes_with_weights_share(client: Client) {
    let log = Log::default();
    let jobs: Vec<_> = ["gpu", "eu"]
        .into_iter()
        .flat_map(|route| (0..12).map(move |_| job(route, route, Priority::Normal)))
        .map(|job| job.build().unwrap())
        .collect();
    client.enqueue_built(&jobs).await.unwrap();
    let worker = noting(&client, "gpu=3,eu=1", &log).start().await.unwrap();
    for job in &jobs {
        client.result(&job.id, PATIENCE).await.unwrap();
    }
    worker.stop().await;
    let log = log.lock().unwrap();
    let gpu = log[..12]
        .iter()
        .filter(|line| line.ends_with(" gpu"))
        .count();
    assert_eq!(gpu, 9, "{log:?}");
}

/// Bindings supply the route that a client leaves out: by name, by topic, by payload.
pub(crate) async fn bindings_say_where_a_job_goes(client: Client) {
    let bindings = r#"{"bindings": [
        {"route": "eu", "topic": "orders.eu.#"},
        {"route": "large", "payload": {"/pixels": {"from": 100}}},
        {"route": "named", "name": "image_*"}
    ]}"#;
    let bindings: Bindings = serde_json::from_str(bindings).unwrap();
    let queue = |request: JobRequest| {
        let job = request.build().unwrap();
        let queue = job.route.queue(client.broker().keys());
        queue.replace("hero:q:work:type:", "")
    };
    let request = |name: &str, payload: &str| JobRequest::new(name.parse().unwrap(), payload);
    let topic = "orders.eu.new".parse().unwrap();
    let bound = |request: JobRequest| request.route_by(&bindings, None);
    assert_eq!(queue(bound(request("a", "{}"))), "a");
    assert_eq!(
        queue(request("a", "{}").route_by(&bindings, Some(&topic))),
        "a:group:eu"
    );
    assert_eq!(
        queue(bound(request("a", r#"{"pixels": 100}"#))),
        "a:group:large"
    );
    assert_eq!(
        queue(bound(request("image_x", "no JSON"))),
        "image_x:group:named"
    );
    let input = request("osis", "INPUT").input(br#"{"pixels": 100}"#);
    assert_eq!(queue(bound(input)), "osis:group:large");
    let own = request("image_x", "1").group("mine".parse().unwrap());
    assert_eq!(queue(bound(own)), "image_x:group:mine");
}
