//! Bananas and ours side by side, in small. `cargo xtask bananas` has 10,000 jobs and a hundred kills.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that panics has failed, and tells what it counted"
)]

use meshwork_testkit::bananas::{Plan, Report, Scenario, play};
use meshwork_testkit::chaos::meshwork_binary;
use meshwork_testkit::servers::{Tool, need};

async fn holds(scenario: Scenario) -> Report {
    let plan = Plan {
        meshwork: meshwork_binary().unwrap(),
        bananas: env!("CARGO_BIN_EXE_bananas").into(),
        jobs: 720,
        kills: 5,
    };
    let report = play(&plan, scenario)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
    report
}

#[tokio::test]
async fn our_worker_with_their_clients_and_scheduler() {
    if need(Tool::Redis).is_some() {
        let report = holds(Scenario::OurWorker).await;
        assert_eq!((report.submitted, report.answers), (720, 8));
    }
}

#[tokio::test]
async fn their_worker_with_our_client_and_scheduler() {
    if need(Tool::Redis).is_some() {
        let report = holds(Scenario::TheirWorker).await;
        assert_eq!((report.submitted, report.answers), (720, 8));
    }
}

#[tokio::test]
async fn all_of_both() {
    if need(Tool::Redis).is_some() {
        let report = holds(Scenario::Both).await;
        assert_eq!(report.submitted, 720);
        let by = |who: &str| report.starts.keys().any(|name| name.starts_with(who));
        assert!(by("ours") && by("theirs"), "{report}");
    }
}

#[tokio::test]
async fn kill_9_while_jobs_go_over_and_back() {
    if need(Tool::Redis).is_some() {
        let report = holds(Scenario::Over).await;
        assert!(report.kills > 0, "{report}");
        assert!(report.starts["ours-over"] > 0, "{report}");
    }
}

#[tokio::test]
async fn kill_9_while_jobs_run() {
    if need(Tool::Python).is_some() && need(Tool::Redis).is_some() {
        assert_eq!(holds(Scenario::Kill).await.kills, 5);
    }
}

#[tokio::test]
async fn sigterm_while_jobs_run() {
    if need(Tool::Python).is_some() && need(Tool::Redis).is_some() {
        assert_eq!(holds(Scenario::Stop).await.kills, 5);
    }
}

#[tokio::test]
async fn runs_over_their_time() {
    if need(Tool::Python).is_some() && need(Tool::Redis).is_some() {
        let report = holds(Scenario::Timeout).await;
        assert_eq!(report.starts["ours-command"], 10);
    }
}
