//! The cost of a page does not grow with the store, and nothing is read without viewers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use meshwork_model::keys::hero::JobKeys;
use meshwork_model::name::Namespace;
use meshwork_test_servers::servers::RealServer;
use serde_json::json;

use super::{Browser, command};
use crate::api::Server;
use crate::api::cost::{commands, fill};
use crate::common::{Ground, eventually};

/// Stored jobs.
const FEW: usize = 1000;
const MANY: usize = 20_000;
/// Readings of a page that are counted together, so that what the supervisor does beside them counts little.
const READINGS: usize = 10;
/// Commands of the supervisor and of the shared figures that may fall into one count.
const BESIDE: u64 = 150;
/// Time without viewers after which nothing is read.
const STILL: Duration = Duration::from_secs(3);

/// Pages that need no scan; the scan of the API, which others share, has a test of its own.
const PAGES: [&str; 8] = [
    "/ui/jobs?state=running",
    "/ui/jobs?state=delayed",
    "/ui/jobs?state=ended",
    "/ui/jobs?state=dead&tag=none",
    "/ui/jobs?state=queued&queue=osis",
    "/ui/job?id=copy-7",
    "/ui/dead",
    "/ui/schedules",
];

fn counts(server: &RealServer, browser: &Browser) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    for path in PAGES {
        server.say::<()>(&["CONFIG", "RESETSTAT"]).unwrap();
        for _ in 0..READINGS {
            assert!(browser.get(path).status < 400, "{path}");
            // Forgets shared results.
            browser.post("/ui/do/job.cancel", &[("id", "none")]);
        }
        let all = commands(server);
        assert_eq!(all.get("keys"), None, "{path}");
        counts.insert(path, all.values().sum());
    }
    counts
}

#[test]
fn a_page_costs_the_same_in_a_large_store() {
    let Some(server) = RealServer::redis().start_for("the cost of the dashboard") else {
        return;
    };
    let (ground, keys) = (
        Ground::url(server.url()),
        JobKeys::new(Namespace::default()),
    );
    let api = Server::open(&ground);
    let new = json!({"type": "osis", "script": "1", "id": "first"});
    assert_eq!(api.rest("POST", "/v1/jobs", &new).0, 201);
    let browser = Browser::open(&api.api);
    fill(&server, &keys, 1, FEW);
    let few = counts(&server, &browser);
    for from in (FEW + 1..MANY).step_by(FEW) {
        fill(&server, &keys, from, from + FEW - 1);
    }
    for (path, count) in counts(&server, &browser) {
        println!("{path}: {} and {count} commands", few[path]);
        assert!(
            count <= few[path] + few[path] / 10 + BESIDE,
            "{path}: {} and {count}",
            few[path]
        );
    }
    api.stop();
}

#[test]
fn nothing_is_read_without_viewers() {
    let Some(server) = RealServer::redis().start_for("the cost of the dashboard") else {
        return;
    };
    let ground = Ground::url(server.url());
    let (running, api, token) = command(&ground, &[]);
    let browser = Browser::sign_in(&api, &token);
    browser.page("/ui/queues");
    let total = || -> u64 {
        let mut all = commands(&server);
        all.retain(|name, _| !matches!(name.as_str(), "info" | "ping" | "config|resetstat"));
        all.values().sum()
    };
    let mut last = (total(), Instant::now());
    eventually("nothing is read", || {
        let now = total();
        if now != last.0 {
            last = (now, Instant::now());
        }
        (last.1.elapsed() > STILL).then_some(())
    });
    running.stop();
}
