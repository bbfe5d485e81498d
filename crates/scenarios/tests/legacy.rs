//! The migration in a small form, once for each of the old patterns. `cargo xtask legacy` has 10,000 jobs.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that panics has failed, and tells what it counted"
)]

use meshwork_scenarios::legacy::{OldList, Plan, play, push_both};
use meshwork_test_servers::binary::meshwork_binary;
use meshwork_test_servers::servers::{Tool, need};

fn plan() -> Plan {
    Plan {
        meshwork: meshwork_binary().unwrap(),
        legacy: env!("CARGO_BIN_EXE_legacy").into(),
        jobs: 400,
        deadly: 0.03,
        seed: 20,
    }
}

async fn holds(list: OldList) {
    let plan = plan();
    let report = play(&plan, list)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
}

#[tokio::test]
async fn a_list_per_type() {
    if need(Tool::Python).is_some() && need(Tool::Redis).is_some() {
        holds(OldList::Suffix).await;
    }
}

#[tokio::test]
async fn a_list_per_actor() {
    if need(Tool::Python).is_some() && need(Tool::Redis).is_some() {
        holds(OldList::Actor).await;
    }
}

#[tokio::test]
async fn a_list_per_worker_and_no_type() {
    if need(Tool::Python).is_some() && need(Tool::Redis).is_some() {
        holds(OldList::Work).await;
    }
}

/// `cargo xtask legacy --unmarked` has 10,000 jobs.
#[tokio::test]
async fn both_sides_and_no_mark() {
    if need(Tool::Redis).is_some() {
        let report = push_both(&plan()).await;
        let report = report.unwrap_or_else(|error| panic!("{error}"));
        println!("{report}");
        assert!(report.holds(), "{report}");
    }
}
