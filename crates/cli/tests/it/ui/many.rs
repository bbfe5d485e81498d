//! Groups of dead letters, and changes of all jobs that match.

use std::collections::BTreeSet;
use std::time::Duration;

use meshwork_broker::JobSet;
use meshwork_model::job::{NewJob, Tag, When};
use meshwork_model::outcome::{Failure, FailureKind};
use meshwork_model::route::Route;
use scraper::Html;
use serde_json::{Value, json};

use super::buttons::press;
use super::{Browser, texts, values};
use crate::api::Server;
use crate::common::{Ground, claimed, eventually, on_all_data, wait};

/// Jobs that are counted, and those that come later.
const COUNTED: usize = 4_000;
const LATER: usize = 500;

/// Stores delayed jobs with a tag.
fn delayed(ground: &Ground, prefix: &str, count: usize) {
    let broker = ground.broker();
    let route = Route::to("osis".parse().unwrap());
    let tag: Tag = "bulk".parse().unwrap();
    let job = |at: usize| {
        let id = format!("{prefix}-{at}").parse().unwrap();
        let mut job = NewJob::new(id, route.clone(), "1");
        job.when = Some(When::In(3_600_000));
        job.tags = BTreeSet::from([tag.clone()]);
        job
    };
    let jobs: Vec<_> = (0..count).map(job).collect();
    for part in jobs.chunks(1000) {
        wait(broker.enqueue(part)).unwrap();
    }
}

/// Follows a change until it says this.
fn until(browser: &Browser, path: &str, text: &str) -> Html {
    eventually(text, || {
        let page = browser.page(path);
        let said = texts(&page, "#many").concat();
        assert!(!said.contains("not answer"), "{said}");
        said.contains(text).then_some(page)
    })
}

on_all_data! {
    fn exactly_the_counted_jobs_change(ground: &Ground) {
        let server = Server::open(ground);
        let browser = Browser::open(&server.api);
        let worker = ground.worker(&["--type", "osis"]);
        delayed(ground, "counted", COUNTED);
        for at in 0..50 {
            let job = json!({"type": "osis", "script": "1", "id": format!("beside-{at}"), "tags": ["bulk"]});
            assert_eq!(server.rest("POST", "/v1/jobs", &job).0, 201);
        }
        let list = "/ui/jobs?state=delayed&tag=bulk";
        let change = press(&browser, list, "Cancel all").leads_to().to_owned();
        let page = until(&browser, &change, "jobs match. Jobs that come");
        assert_eq!(texts(&page, "button.danger"), ["Cancel 4,000 jobs"]);
        delayed(ground, "later", LATER);
        // The second click of the same form does nothing.
        for _ in 0..2 {
            let form = [("id", change.split_once("id=").unwrap().1)];
            assert_eq!(browser.post("/ui/many", &form).leads_to(), change);
        }
        let end = until(&browser, &change, "Done: ");
        let said = texts(&end, "#many").concat();
        assert!(said.contains("4,000 of 4,000 jobs changed"), "{said}");
        let left = wait(ground.broker().set_length(JobSet::Delayed)).unwrap();
        assert_eq!(left, LATER as u64);
        let of = |id: &str| server.rest("GET", &format!("/v1/jobs/{id}"), &Value::Null).1["error"].clone();
        assert_eq!(of("later-0"), Value::Null);
        assert_eq!(of("counted-3999"), "stopped");
        let done = server.rest("GET", "/v1/jobs/beside-0/result?wait=30s", &Value::Null).1;
        assert_eq!(done["status"], "finished", "{done}");
        worker.stop();
        server.stop();
    }

    fn deletions_want_the_name(ground: &Ground) {
        let server = Server::open(ground);
        let browser = Browser::open(&server.api);
        delayed(ground, "mine", 3);
        let change = press(&browser, "/ui/jobs?state=delayed", "Delete all").leads_to().to_owned();
        until(&browser, &change, "3 jobs match");
        let id = change.split_once("id=").unwrap().1;
        let wrong = browser.post("/ui/many", &[("id", id), ("typed", "all")]);
        assert_eq!(wrong.status, 400, "{}", wrong.body);
        // A later job has the id of a counted one.
        assert_eq!(server.rest("DELETE", "/v1/jobs/mine-1", &Value::Null).0, 200);
        let again = json!({"type": "osis", "script": "1", "id": "mine-1", "delay": "1h"});
        assert_eq!(server.rest("POST", "/v1/jobs", &again).0, 201);
        assert_eq!(browser.post("/ui/many", &[("id", id), ("typed", "delayed")]).status, 303);
        let end = until(&browser, &change, "Done: ");
        let said = texts(&end, "#many").concat();
        assert!(said.contains("2 of 3 jobs changed") && said.contains("1 changed or went away"), "{said}");
        assert_eq!(server.rest("GET", "/v1/jobs/mine-1", &Value::Null).0, 200);
        // A process that was started again does not know it.
        server.stop();
        let server = Server::open(ground);
        let lost = Browser::open(&server.api).get(&change);
        assert_eq!(lost.status, 404);
        assert!(lost.body.contains("count the jobs again"), "{}", lost.body);
        let none = Browser::open(&server.api).post("/ui/many/key.create?state=delayed", &[]);
        assert_eq!(none.status, 404);
        server.stop();
    }

    fn dead_letters_are_grouped(ground: &Ground) {
        let server = Server::open(ground);
        let browser = Browser::open(&server.api);
        for (at, error) in ["no user 17 in \"a\"", "no user 4 in \"<b>\"", "disk full"].into_iter().enumerate() {
            let job = json!({"type": "osis", "script": "1", "id": format!("dead-{at}")});
            assert_eq!(server.rest("POST", "/v1/jobs", &job).0, 201);
            let broker = ground.broker();
            let taken = claimed(&broker);
            let failure = Failure::new(FailureKind::Permanent, error);
            wait(broker.fail(&taken, &failure, b"", b"", Duration::ZERO)).unwrap();
        }
        let page = browser.page("/ui/dead");
        assert_eq!(texts(&page, "#groups tbody td:first-child"), ["2", "1"]);
        assert_eq!(texts(&page, "#groups td.wide"), ["no user # in \"…\"", "disk full"]);
        assert!(texts(&page, ".pager").concat().contains("Looked at 3 of 3"));
        let groups = server.rest("GET", "/v1/dead_groups", &Value::Null).1;
        assert_eq!((&groups["groups"][0]["count"], &groups["next"]), (&json!(2), &Value::Null));
        let listed = ground.run(&["dead", "list", "--groups", "--json"]).ok();
        let first: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
        assert_eq!(first, groups["groups"][0]);
        let group = values(&page, "#groups td.wide a", "href")[0].clone();
        let ids = texts(&browser.page(&group), "tbody tr td:first-child a");
        assert_eq!(ids, ["dead-1", "dead-0"]);
        let change = press(&browser, "/ui/dead", "Retry group").leads_to().to_owned();
        let counted = until(&browser, &change, "2 jobs match");
        let id = change.split_once("id=").unwrap().1;
        assert_eq!(texts(&counted, "button.danger"), ["Retry 2 jobs"]);
        browser.post("/ui/many", &[("id", id)]);
        until(&browser, &change, "2 of 2 jobs changed");
        let left = texts(&browser.page("/ui/dead?view=letters"), "tbody tr td:first-child a");
        assert_eq!(left, ["dead-2"]);
        server.stop();
    }
}
