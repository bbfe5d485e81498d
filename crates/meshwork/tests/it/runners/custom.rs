//! A runtime of another crate: it has only the public trait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use meshwork::runtime::{Run, Runtime, RuntimeInfo};
use meshwork::{JobRequest, Worker};
use meshwork_model::outcome::{Failure, FailureKind, Report};

use super::support::within;
use crate::engines::embedded;

/// Returns scripts in capital letters.
struct Capitals {
    broken: AtomicBool,
}

impl Runtime for Capitals {
    fn run(&self, run: Run) -> BoxFuture<'_, Report> {
        let text = String::from_utf8_lossy(&run.job.script).to_uppercase();
        Box::pin(std::future::ready(Report::done(text.into_bytes())))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        let missing = || Failure::new(FailureKind::NotStarted, "no capital letters here");
        let found = match self.broken.load(Ordering::Relaxed) {
            true => Err(missing()),
            false => Ok(()),
        };
        Box::pin(std::future::ready(found))
    }

    fn describe(&self) -> BoxFuture<'_, RuntimeInfo> {
        Box::pin(async {
            let info = RuntimeInfo::new("capitals").version("1");
            info.missing(self.probe().await.err())
        })
    }
}

#[tokio::test]
async fn a_runtime_of_another_crate_runs_its_scripts() {
    let client = embedded();
    let capitals = Arc::new(Capitals {
        broken: AtomicBool::new(false),
    });
    let script_type: meshwork_model::name::ScriptType = "capitals".parse().unwrap();
    let worker = Worker::new(&client).runtime(script_type.clone(), capitals.clone());
    let worker = worker.start().await.unwrap();
    let request = JobRequest::new(script_type, "hello");
    let job = within(Box::pin(client.run(request))).await.unwrap();
    assert_eq!(job.output.as_deref(), Some(&b"HELLO"[..]));
    worker.stop().await;

    let info = capitals.describe().await;
    assert_eq!(
        (&*info.interpreter, info.version.as_deref()),
        ("capitals", Some("1"))
    );
    assert_eq!(info.missing, None);
    capitals.broken.store(true, Ordering::Relaxed);
    let info = capitals.describe().await;
    assert_eq!(info.missing.as_deref(), Some("no capital letters here"));
}

/// Finds out in its first run that the host lacks what it needs.
struct Gone(AtomicBool);

impl Runtime for Gone {
    fn run(&self, _run: Run) -> BoxFuture<'_, Report> {
        self.0.store(true, Ordering::Relaxed);
        let missing = Failure::new(FailureKind::Permanent, "the letters are gone").of_host();
        Box::pin(std::future::ready(Report::failed(missing)))
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), Failure>> {
        let missing = || Failure::new(FailureKind::NotStarted, "the letters are gone");
        let found = match self.0.load(Ordering::Relaxed) {
            true => Err(missing()),
            false => Ok(()),
        };
        Box::pin(std::future::ready(found))
    }
}

#[tokio::test]
async fn a_job_fails_by_name_and_no_other_follows_if_the_host_lacks_something() {
    let client = embedded();
    let script_type: meshwork_model::name::ScriptType = "letters".parse().unwrap();
    let gone = Arc::new(Gone(AtomicBool::new(false)));
    let worker = Worker::new(&client).runtime(script_type.clone(), gone);
    let worker = worker.start().await.unwrap();
    assert!(worker.monitor().sound().is_ok());
    let request = JobRequest::new(script_type, "hello");
    let ended = within(Box::pin(client.run(request))).await;
    let said = format!("{ended:?}");
    assert!(said.contains("the letters are gone"), "{said}");
    assert!(worker.monitor().sound().is_err(), "it is paused");
    worker.stop().await;
}
