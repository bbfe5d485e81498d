//! Children of a job whose handler is in Rust, and of one whose lease is lost. Called by the tests of the worker.

use std::sync::{Arc, Mutex};

use meshwork::runtime::{AddChildError, JobContext};
use meshwork::{Client, JobRequest, Worker};
use meshwork_model::job::NewChild;
use meshwork_model::name::JobId;
use meshwork_test_servers::eventually;
use tokio::sync::watch;

use super::{PATIENCE, SHORT};

fn add_one(parent: &str) -> JobRequest {
    let request = JobRequest::new("parent".parse().unwrap(), "1");
    request.id(parent.parse().unwrap()).caller("me", "here")
}

pub(crate) async fn a_handler_gets_children(client: Client) {
    let double = async |n: u64, context: JobContext| {
        Ok::<_, String>(format!(
            "{} {} {}",
            n * 2,
            context.caller_id,
            context.context_id
        ))
    };
    let parent = async |n: u64, context: JobContext| {
        let child = NewChild {
            script_type: Some("double".parse().unwrap()),
            ..NewChild::new(n.to_string())
        };
        let first = context.add_child(&child).await?;
        let second = context.add_child(&child).await?;
        Ok::<_, AddChildError>([first, second].map(|id| id.to_string()))
    };
    let worker = Worker::new(&client)
        .handle("double", double)
        .handle("parent", parent);
    let worker = worker.start().await.unwrap();
    let id = client.enqueue(add_one("p")).await.unwrap();
    let job = client.wait(&id, PATIENCE).await.unwrap();
    assert_eq!(job.output.as_deref(), Some(&br#"["p.1","p.2"]"#[..]));
    for child in client.children(&id).await.unwrap() {
        let job = client.wait(&child.job_id(), PATIENCE).await.unwrap();
        assert_eq!(job.output.as_deref(), Some(&br#""2 me here""#[..]));
    }
    worker.stop().await;
}

/// The handler of the run that lost its job asks while the second one runs, and after it.
pub(crate) async fn a_run_that_lost_its_job_gets_no_child(client: Client) {
    let contexts = Arc::new(Mutex::new(Vec::new()));
    let go = watch::Sender::new(false);
    let (seen, may) = (Arc::clone(&contexts), go.clone());
    let parent = move |_: u64, context: JobContext| {
        seen.lock().unwrap().push(context);
        let mut may = may.subscribe();
        async move {
            let _ = may.wait_for(|go| *go).await;
            Ok::<_, String>(())
        }
    };
    let worker = Worker::new(&client).handle("parent", parent).lease(SHORT);
    let worker = worker.start().await.unwrap();
    let id = client.enqueue(add_one("p")).await.unwrap();
    let begun = async |runs| {
        eventually("the run has begun", PATIENCE, async || {
            (contexts.lock().unwrap().len() == runs).then_some(())
        })
        .await;
    };
    begun(1).await;
    client.force_cancel(&id).await.unwrap();
    eventually("it is run again", PATIENCE, async || {
        client.retry(&id).await.ok()
    })
    .await;
    begun(2).await;
    let context = |at: usize| contexts.lock().unwrap()[at].clone();
    let child = NewChild::new("1");
    let refused = context(0).add_child(&child).await;
    assert!(
        matches!(refused, Err(AddChildError::Stale { number: 1, .. })),
        "{refused:?}"
    );
    let none: [JobId; 0] = [];
    let of = async || {
        let children = client.children(&id).await.unwrap();
        children.iter().map(|job| job.job_id()).collect::<Vec<_>>()
    };
    assert_eq!(of().await, none);
    assert_eq!(context(1).add_child(&child).await.unwrap().as_str(), "p.1");
    go.send_replace(true);
    client.wait(&id, PATIENCE).await.unwrap();
    let late = context(1).add_child(&child).await;
    assert!(
        matches!(late, Err(AddChildError::Stale { number: 2, .. })),
        "{late:?}"
    );
    assert_eq!(of().await.len(), 1);
    worker.stop().await;
}
