//! Bananas and Meshwork on one server, in a small form. `cargo xtask bananas` has 10,000 jobs and a hundred kills.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that panics has failed, and tells what it counted"
)]

use std::collections::HashSet;
use std::time::Duration;

use meshwork_scenarios::bananas::{Outcome, Plan, Report, Scenario, play};
use meshwork_test_servers::binary::meshwork_binary;
use meshwork_test_servers::servers::{Tool, need};

async fn outcome(scenario: Scenario) -> Outcome {
    let plan = Plan {
        meshwork: meshwork_binary().unwrap(),
        bananas: env!("CARGO_BIN_EXE_bananas").into(),
        jobs: 720,
        kills: 5,
        watch: Duration::from_secs(3),
    };
    let outcome = play(&plan, scenario)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{outcome}");
    outcome
}

async fn holds(scenario: Scenario) -> Report {
    match outcome(scenario).await {
        Outcome::Counted(report) => {
            assert!(report.holds(), "{report}");
            assert_eq!(report.json()["submitted"], report.submitted);
            report
        }
        Outcome::Measured(idle) => panic!("{idle}"),
    }
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

/// Checks that a job on any list wakes the worker. The latency itself depends on the machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_on_any_list_wakes_our_worker() {
    if need(Tool::Redis).is_none() {
        return;
    }
    let Outcome::Measured(idle) = outcome(Scenario::Idle).await else {
        panic!("nothing was measured");
    };
    // Three routes and three priorities; jobs of `default` may be on lists of either kind.
    let lists: HashSet<_> = idle.lists.iter().map(|pickup| &pickup.list).collect();
    assert_eq!(lists.len(), 12);
    for pickup in &idle.lists {
        assert_eq!(pickup.samples, 60, "{idle}");
        // No poll comes so soon.
        assert!(pickup.p50_us < 200_000.0, "{idle}");
    }
    // The worker blocks at each list on a connection of its own.
    assert!((13..=16).contains(&idle.connections), "{idle}");
    assert!((1.0..50.0).contains(&idle.calls_per_second), "{idle}");
    assert_eq!(idle.json()["connections"], idle.connections);
}
