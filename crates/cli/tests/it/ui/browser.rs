//! The pages in Chromium, which is driven by `tests/ui/browser.mjs`. With `MESHWORK_PICTURES`, it writes pictures of some
//! pages into this folder.

use std::process::Command;

use meshwork_test_servers::servers::{Tool, need};
use serde_json::json;

use super::filled;
use crate::api::Server;
use crate::common::{Ground, Running, eventually};

const FLOW: &str = "
flow: nightly
jobs:
  fetch: {script: '[1, 2, 3]', type: osis}
  parse: {script: '6 * 7', type: osis, needs: fetch, foreach: '[1, 2, 3]'}
  check: {script: 'throw \"bad\"', type: osis, continue: true, needs: fetch}
  release: {approve: 'Publish?', needs: parse}
";

/// Starts a flow with items, a failure and an open approval in context 1, and waits until it asks.
fn start_flow(ground: &Ground, server: &Server) -> Running {
    let worker = ground.worker(&["--context", "1", "--type", "osis"]);
    let (status, made) = server.rest("POST", "/v1/flows", &json!({"flow": FLOW}));
    assert_eq!(status, 200, "{made}");
    eventually("the flow asks", || {
        let (_, view) = server.rest("GET", "/v1/flows/1", &json!({}));
        view.to_string().contains("\"question\"").then_some(())
    });
    worker
}

#[test]
fn pages_hold_in_a_browser() {
    let (Some(chromium), Some(sdk)) = (need(Tool::Chromium), need(Tool::BrowserSdk)) else {
        return;
    };
    let Some(ground) = Ground::embedded() else {
        return;
    };
    ground.run(&["context", "create"]).ok();
    let (open, _) = filled(&ground);
    let worker = start_flow(&ground, &open);
    ground
        .run(&["actor", "grant-node", "1", "--scope", "admin"])
        .ok();
    let made = ground.run(&["key", "create", "root", "--scope", "admin", "--actor", "1"]);
    let key = made.ok().stdout.trim().to_owned();
    let server = Server::start(&ground, &[]);
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ui/browser.mjs"));
    node.arg(sdk.ancestors().nth(3).unwrap()).arg(chromium);
    node.arg(format!("http://{}", server.address)).arg(&key);
    node.args([
        "/ui/flow?id=1&context=1",
        "/ui/",
        "/ui/jobs?state=ended",
        "/ui/jobs?state=queued",
        "/ui/job?id=last",
        "/ui/job?id=done",
        "/ui/job?id=bad",
        "/ui/queues",
        "/ui/queue?queue=osis",
        "/ui/workers",
        "/ui/dead",
        "/ui/schedules",
        "/ui/flows?context=1",
        "/ui/flow?id=1&context=1",
        "/ui/search?q=nothing",
        "/ui/confirm?method=queue.purge&queue=osis&count=1",
    ]);
    let done = Running::start(node).ended();
    assert!(
        done.stdout
            .trim_end()
            .ends_with("\"pages\":60,\"faults\":0}"),
        "{}\n{}",
        done.stdout,
        done.stderr
    );
    worker.stop();
    server.stop();
    open.stop();
}
