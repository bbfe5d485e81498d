//! The pages, and the links between them.

use std::collections::BTreeSet;

use super::{Browser, filled, texts, values};
use crate::api::Server;
use crate::common::{Ground, eventually, on_all_data};

on_all_data! {
    fn each_link_leads_to_a_page(ground: &Ground) {
        let (server, browser) = filled(ground);
        let mut seen = BTreeSet::new();
        let mut open = vec!["/ui/".to_owned(), "/ui/job?id=last".into(), "/ui/job?id=done".into(), "/ui/search?q=osis".into()];
        while let Some(path) = open.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let came = browser.get(&path);
            if came.status == 303 {
                open.push(came.leads_to().to_owned());
                continue;
            }
            assert_eq!(came.status, 200, "{path}: {}", came.body);
            if path.contains("/assets/") {
                continue;
            }
            let page = scraper::Html::parse_document(&came.body);
            assert!(!texts(&page, "h1").is_empty(), "{path}");
            // No script within a page, and no style.
            assert!(texts(&page, "script, style").iter().all(String::is_empty), "{path}");
            assert!(values(&page, "[style]", "style").is_empty(), "{path}");
            let links = values(&page, "a[href], link[href]", "href");
            open.extend(links.into_iter().filter(|link| link.starts_with('/')));
            open.extend(values(&page, "script[src]", "src"));
        }
        assert!(seen.len() > 30, "{seen:?}");
        for page in ["workers", "dead", "schedules", "flows", "queue?queue=", "job?id=late", "confirm?"] {
            assert!(seen.iter().any(|path| path.contains(page)), "{page}: {seen:?}");
        }
        server.stop();
    }

    fn jobs_are_found_by_state_and_filter(ground: &Ground) {
        let (server, browser) = filled(ground);
        let ids = |query: &str| texts(&browser.page(&format!("/ui/jobs?{query}")), "tbody tr td:first-child a");
        assert_eq!(ids("state=delayed"), ["late"]);
        assert_eq!(ids("state=dead"), ["bad"]);
        assert_eq!(ids("state=ended"), ["bad", "done"]);
        assert_eq!(ids("state=ended&tag=web"), ["done"]);
        assert_eq!(ids("state=ended&error=boom"), ["bad"]);
        assert_eq!(ids("state=ended&type=python"), [""; 0]);
        assert_eq!(ids("state=queued&queue=osis"), ["first"]);
        assert_eq!(ids("state=ended&since=2026-01-31T12%3A00"), ["bad", "done"]);
        assert_eq!(ids("state=ended&until=2026-01-31T12%3A00%3A00Z"), [""; 0]);
        assert_eq!(ids("state=ended&batch=none"), [""; 0]);
        assert_eq!(browser.get("/ui/jobs?state=ended&since=today").status, 400);
        eventually("the queues are found", || {
            let page = browser.page("/ui/jobs?state=queued");
            (texts(&page, "#jobs li > a:first-child") == ["osis", "python"]).then_some(())
        });
        assert_eq!(browser.get("/ui/jobs?state=x").status, 400);
        server.stop();
    }

    fn a_spread_queue_leads_to_its_parts(ground: &Ground) {
        ground.run(&["queue", "spread", "osis", "--parts", "3"]).ok();
        let server = Server::open(ground);
        let browser = Browser::open(&server.api);
        let page = browser.page("/ui/queue?queue=osis");
        let links = values(&page, "[aria-label='Parts'] a", "href");
        assert_eq!(links.len(), 3);
        for link in links {
            // The page of a part leads to the others, too.
            let there = values(&browser.page(&link), "[aria-label='Parts'] a", "href");
            assert_eq!(there.len(), 3, "{link}");
        }
        assert_eq!(browser.get("/ui/queue?queue=python").status, 404);
        ground.run(&["queue", "pause", "python", "--create"]).ok();
        let page = browser.page("/ui/queue?queue=python");
        assert!(values(&page, "[aria-label='Parts'] a", "href").is_empty());
        server.stop();
    }

    fn a_job_shows_its_life(ground: &Ground) {
        let (server, browser) = filled(ground);
        let page = browser.page("/ui/job?id=last");
        let shown = ground.run(&["job", "why", "last", "--json"]).ok().json();
        let reasons = texts(&page, ".why li");
        assert_eq!(serde_json::json!(reasons), shown["reasons"]);
        assert!(texts(&page, "#around a").contains(&"first".to_owned()));
        assert!(texts(&browser.page("/ui/job?id=done"), "#result pre")[0].contains("42"));
        let bad = browser.page("/ui/job?id=bad");
        assert!(texts(&bad, ".failure pre")[0].contains("boom"));
        let attempt = texts(&bad, "[aria-label='Failed attempts'] tbody td");
        assert_eq!(attempt[..2], ["1", "failed"]);
        assert!(attempt[5].contains("boom"), "{attempt:?}");
        assert_eq!(browser.get("/ui/job?id=none").status, 404);
        assert_eq!(browser.get("/ui/search?q=late").leads_to(), "/ui/job?id=late");
        assert!(browser.get("/ui/search?q=osis").leads_to().starts_with("/ui/queue?queue="));
        assert_eq!(browser.get("/ui/search?q=nightly").leads_to(), "/ui/schedules?name=nightly");
        assert!(texts(&browser.page("/ui/search"), ".empty strong")[0].contains("Nothing to look for"));
        let made = server.rest("POST", "/v1/batches", &serde_json::json!({"name": "<b>"})).1;
        let batch = made["id"].as_str().unwrap();
        assert_eq!(browser.get(&format!("/ui/search?q={batch}")).leads_to(), format!("/ui/batch?id={batch}"));
        assert_eq!(texts(&browser.page(&format!("/ui/batch?id={batch}")), "h1"), ["<b>"]);
        server.stop();
    }

    fn schedules_show_their_next_times_in_their_zone(ground: &Ground) {
        ground.file("f.rhai", "1");
        ground.run(&["schedule", "add", "early", "--cron", "30 6 * * *", "--tz", "Asia/Tokyo", "f.rhai"]).ok();
        let server = Server::open(ground);
        let page = Browser::open(&server.api).page("/ui/schedules");
        let next = texts(&page, "details li");
        assert_eq!(next.len(), 5);
        let listed = ground.run(&["schedule", "next", "early", "--count", "5"]).ok();
        assert_eq!(next, listed.stdout.lines().collect::<Vec<_>>());
        assert!(next.iter().all(|at| at.contains("06:30")), "{next:?}");
        server.stop();
    }

    fn workers_show_migrations_and_foreign_clients(ground: &Ground) {
        ground.run(&["migrate", "start", "--type", "osis"]).ok();
        let server = Server::open(ground);
        let browser = Browser::open(&server.api);
        let row = texts(&browser.page("/ui/workers"), "[aria-label='Foreign clients and migrations'] tbody td");
        assert_eq!(row, ["osis", "0 of 0", "dual", "hero:job:actor_queue:osis", "0"]);
        let types = server.rest("GET", "/v1/migrations", &serde_json::Value::Null).1;
        assert_eq!(types["types"][0]["phase"], "dual", "{types}");
        server.stop();
    }

    fn texts_are_found_in_jobs(ground: &Ground) {
        let (server, browser) = filled(ground);
        let found = |query: &str| {
            let page = browser.page(&format!("/ui/search?{query}"));
            assert!(texts(&page, ".finds .note").concat().contains("The search has ended"), "{query}");
            let last = texts(&page, ".progress").pop().unwrap();
            (texts(&page, ".found a"), last)
        };
        assert_eq!(found("q=boom"), (vec!["bad".to_owned()], "5 of 5, 1 found".to_owned()));
        // Scripts, results and ids, in the chosen states.
        assert_eq!(found("q=40+%2B+2").0, ["done", "first", "other", "late"]);
        assert_eq!(found("q=40+%2B+2&delayed=1"), (vec!["late".to_owned()], "1 of 1, 1 found".to_owned()));
        assert_eq!(found("q=irs&queued=1").0, ["first"]);
        assert_eq!(found("q=%3Cb%3E").0, [""; 0]);
        // Jobs that wait for other jobs are in no list.
        assert_eq!(found("waiting=1").0, ["last"]);
        assert_eq!(found("q=las&waiting=1").0, ["last"]);
        assert_eq!(found("q=first&waiting=1").0, [""; 0]);
        assert_eq!(browser.get(&format!("/ui/search?q={}", "x".repeat(1001))).status, 400);
        server.stop();
    }

    fn payloads_are_hidden_on_request(ground: &Ground) {
        let (first, _) = filled(ground);
        let server = Server::start(ground, &["--insecure-no-auth", "--hide-payloads"]);
        let shown = browser_of(&first).get("/ui/job?id=done").body;
        let hidden = browser_of(&server).get("/ui/job?id=done").body;
        for text in ["40 + 2", "42"] {
            assert!(shown.contains(&format!("<bdi>{text}</bdi>")), "{text}");
            assert!(!hidden.contains(&format!("<bdi>{text}</bdi>")), "{text}");
        }
        let found = |server: &Server| texts(&browser_of(server).page("/ui/search?q=40+%2B+2&ended=1"), ".found a");
        assert_eq!((found(&first).len(), found(&server).len()), (1, 0));
        first.stop();
        server.stop();
    }
}

fn browser_of(server: &Server) -> Browser {
    Browser::open(&server.api)
}
