//! Parts of pages that follow their topic.

use serde_json::json;

use super::{Browser, texts};
use crate::api::Server;
use crate::api::sse::Events;
use crate::common::{Ground, claimed, eventually, on_all_data, wait};

on_all_data! {
    fn a_page_learns_of_changes(ground: &Ground) {
        let server = Server::open(ground);
        let create = |id: &str| {
            let body = json!({"type": "osis", "script": "1", "id": id});
            assert_eq!(server.rest("POST", "/v1/jobs", &body).0, 201);
        };
        create("one");
        let browser = Browser::open(&server.api);
        let mut job = Events::open(&server, "/ui/live?topic=job:one", "");
        let mut figures = Events::open(&server, "/ui/live?topic=figures", "");
        let mut log = Events::open(&server, "/ui/log?id=one", "");
        assert_eq!(figures.next().kind, "change");
        let worker = ground.broker();
        let taken = claimed(&worker);
        assert_eq!(job.next().kind, "change");
        eventually("the page shows it", || texts(&browser.page("/ui/job?id=one"), "#head .badge").contains(&"running".to_owned()).then_some(()));
        wait(worker.log(&taken, &[("stdout", b"hello")], None)).unwrap();
        let line = log.next();
        assert_eq!((line.kind.as_str(), &line.data["line"]), ("line", &json!("hello")));
        wait(worker.complete(&taken, b"4", b"", b"")).unwrap();
        assert_eq!(job.next().kind, "change");
        assert_eq!(log.next().kind, "end");
        for (path, status) in [("/ui/live", 400), ("/ui/live?topic=x", 400), ("/ui/log?id=none", 404)] {
            assert_eq!(browser.get(path).status, status, "{path}");
        }
        server.stop();
    }
}
