//! Calls of actions while workers are killed, in small. `cargo xtask actions` has 100,000 calls and a hundred kills.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that panics has failed, and tells what it counted"
)]

use meshwork_model::keys::nooble::Dialect;
use meshwork_scenarios::actions::{Plan, play};
use meshwork_test_servers::servers::{Tool, need};

async fn holds(dialect: Dialect) {
    if need(Tool::Redis).is_none() {
        return; // reported as skipped
    }
    let plan = Plan {
        actions: env!("CARGO_BIN_EXE_actions").into(),
        dialect,
        calls: 900,
        kills: 4,
        seed: 20,
    };
    let report = play(&plan).await.unwrap_or_else(|error| panic!("{error}"));
    println!("{report}");
    assert!(report.holds(), "{report}");
    assert_eq!((report.calls, report.kills), (900, 4));
    assert!(report.inner >= 80, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_streams_are_answered_once() {
    holds(Dialect::Streams).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_lists_are_answered_once() {
    holds(Dialect::Lists).await;
}
