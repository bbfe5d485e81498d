//! Nothing is read without viewers.

use std::time::{Duration, Instant};

use meshwork_test_servers::servers::RealServer;

use super::{Browser, command};
use crate::api::cost::commands;
use crate::common::{Ground, eventually};

/// Time without viewers after which nothing is read.
const STILL: Duration = Duration::from_secs(3);

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
