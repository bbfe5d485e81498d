//! Pages while the store is away.

use std::time::{Duration, Instant};

use meshwork_test_servers::servers::RealServer;

use super::{Browser, key, texts};
use crate::api::Server;
use crate::common::{Ground, eventually};

/// Three seconds for the page, and one for a machine that builds at the same time.
const SAID_WITHIN: Duration = Duration::from_secs(4);

#[test]
fn pages_say_that_the_store_is_away_and_go_on() {
    let Some(server) = RealServer::redis().start_for("the dashboard without a store") else {
        return;
    };
    let ground = Ground::url(server.url());
    let root = key(&ground, "root", "admin");
    let api = Server::start(&ground, &[]);
    let browser = Browser::sign_in(&api.api, &root);
    browser.page("/ui/");
    server.pause();
    for path in ["/ui/job?id=one", "/ui/dead", "/ui/queue?queue=osis"] {
        let began = Instant::now();
        let came = browser.get(path);
        assert_eq!(
            (came.status, came.header("refresh")),
            (503, Some("5")),
            "{path}: {}",
            came.body
        );
        assert!(
            began.elapsed() < SAID_WITHIN,
            "{path}: {:?}",
            began.elapsed()
        );
    }
    eventually("the overview shows the age of its figures", || {
        let said = texts(&browser.page("/ui/"), "#age").concat();
        said.contains("does not answer").then_some(())
    });
    server.resume();
    eventually("the pages go on", || {
        let is_there = browser.get("/ui/job?id=one").status == 404;
        let said = texts(&browser.page("/ui/"), "#age").concat();
        (is_there && said.is_empty()).then_some(())
    });
    api.stop();
}
