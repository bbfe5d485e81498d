//! Buttons: each works for who may use it, and is absent and refused for others.

use scraper::Html;

use super::{Browser, filled, key, selected, texts, values};
use crate::api::Server;
use crate::common::http::Came;
use crate::common::{Ground, on_all_data};

/// Pages that have buttons.
const PAGES: [&str; 10] = [
    "/ui/job?id=first",
    "/ui/job?id=late",
    "/ui/job?id=done",
    "/ui/queues",
    "/ui/queue?queue=osis",
    "/ui/dead",
    "/ui/dead?view=letters",
    "/ui/jobs?state=ended",
    "/ui/schedules",
    "/ui/workers",
];

/// Presses the button with this label on a page.
pub(super) fn press(browser: &Browser, path: &str, label: &str) -> Came {
    let page = browser.page(path);
    let forms = selected("form[method=post]");
    let form = page.select(&forms).find(|form| {
        let text: String = form.text().collect();
        text.trim().starts_with(label)
    });
    let form = form
        .unwrap_or_else(|| panic!("{path} has no button {label}: {:?}", texts(&page, "button")));
    let inputs = selected("input[name]");
    let fields: Vec<_> = form
        .select(&inputs)
        .filter_map(|it| Some((it.attr("name")?, it.attr("value").unwrap_or_default())))
        .collect();
    browser.post(form.attr("action").unwrap(), &fields)
}

fn follows(browser: &Browser, came: &Came) -> Html {
    browser.page(came.leads_to())
}

fn changes(page: &Html) -> Vec<String> {
    let forms = values(page, "form[method=post]", "action");
    forms
        .into_iter()
        .filter(|action| action.contains("/do/") || action.contains("/many/"))
        .collect()
}

on_all_data! {
    fn each_button_works(ground: &Ground) {
        let (server, browser) = filled(ground);
        for (path, label, done) in [
            ("/ui/queues", "Pause", "paused"),
            ("/ui/queue?queue=osis", "Resume", "open again"),
            ("/ui/queue?queue=osis", "Drain", "refuses new jobs"),
            ("/ui/queue?queue=osis", "Resume", "open again"),
            ("/ui/job?id=late", "Run now", "does not wait"),
            ("/ui/job?id=late", "Cancel", "cancelled"),
            ("/ui/job?id=done", "Retry", "queued again"),
            ("/ui/dead?view=letters", "Retry", "queued again"),
            ("/ui/schedules", "Run now", "is queued"),
            ("/ui/schedules", "Pause", "paused"),
            ("/ui/schedules", "Resume", "fires again"),
        ] {
            let came = press(&browser, path, label);
            let flash = texts(&follows(&browser, &came), ".flash").concat();
            assert!(flash.contains(done), "{path} {label}: {flash}");
        }
        let state = |id: &str| ground.run(&["job", "why", id, "--json"]).ok().json()["state"].as_str().unwrap().to_owned();
        assert_eq!((state("late").as_str(), state("done").as_str(), state("bad").as_str()), ("cancelled", "queued", "queued"));
        // A limit.
        let fields = [("queue", "osis"), ("concurrency", "3"), ("rate", "10/1m"), ("length", ""), ("back", "/ui/queue?queue=osis")];
        assert_eq!(browser.post("/ui/do/queue.limit", &fields).status, 303);
        let page = browser.page("/ui/queue?queue=osis");
        let set = values(&page, "#limit-concurrency, #limit-rate", "value");
        assert_eq!(set, ["3", "10/min burst 10"]);
        // The form sends the values that it shows.
        let came = press(&browser, "/ui/queue?queue=osis", "Jobs that may wait");
        assert_eq!(values(&follows(&browser, &came), "#limit-concurrency, #limit-rate", "value"), set);
        // An empty field removes a limit.
        let fields = [("queue", "osis"), ("concurrency", ""), ("back", "/ui/queue?queue=osis")];
        assert_eq!(browser.post("/ui/do/queue.limit", &fields).status, 303);
        let left = values(&browser.page("/ui/queue?queue=osis"), "#limit-concurrency, #limit-rate", "value");
        assert_eq!(left, ["10/min burst 10"]);
        let wrong = browser.post("/ui/do/queue.limit", &[("queue", "osis"), ("rate", "<fast>")]);
        assert_eq!(wrong.status, 400);
        assert!(wrong.body.contains("&lt;fast&gt;"), "{}", wrong.body);
        server.stop();
    }

    fn what_cannot_be_taken_back_is_confirmed(ground: &Ground) {
        let (server, browser) = filled(ground);
        let confirm = |path: &str| {
            let page = browser.page(path);
            values(&page, "a.danger", "href")[0].clone()
        };
        let came = press(&browser, &confirm("/ui/job?id=last"), "Delete");
        assert!(came.leads_to().starts_with("/ui/jobs"));
        assert_eq!(browser.get("/ui/job?id=last").status, 404);
        let purge = confirm("/ui/queue?queue=python");
        let page = browser.page(&purge);
        assert_eq!(texts(&page, "button.danger"), ["Delete 1 job"]);
        // The name has to be typed.
        assert_eq!(press(&browser, &purge, "Type").status, 400);
        let fields = [("queue", "python"), ("must", "python"), ("typed", "python"), ("back", "/ui/queues")];
        assert_eq!(browser.post("/ui/do/queue.purge", &fields).leads_to(), "/ui/queues?done=queue.purge");
        assert_eq!(browser.get("/ui/job?id=other").status, 404);
        let came = press(&browser, &confirm("/ui/schedules"), "Delete");
        assert!(texts(&follows(&browser, &came), ".empty").concat().contains("No schedules"));
        let came = press(&browser, &confirm("/ui/dead?view=letters"), "Delete");
        assert!(texts(&follows(&browser, &came), ".empty").concat().contains("No dead letters"));
        assert_eq!(browser.get("/ui/confirm?method=key.create&id=x").status, 404);
        server.stop();
    }

    fn a_viewer_has_no_buttons(ground: &Ground) {
        let (first, open) = filled(ground);
        let root = key(ground, "root", "admin");
        let eyes = key(ground, "eyes", "viewer");
        let server = Server::start(ground, &[]);
        let (admin, viewer) = (Browser::sign_in(&server.api, &root), Browser::sign_in(&server.api, &eyes));
        let mut all = std::collections::BTreeSet::new();
        for path in PAGES {
            let page = viewer.page(path);
            assert_eq!(changes(&page), [""; 0], "{path}");
            assert!(values(&page, "a.danger", "href").is_empty(), "{path}");
            let of_admin = admin.page(path);
            all.extend(changes(&of_admin));
            for href in values(&of_admin, "a.danger", "href") {
                assert_eq!(viewer.get(&href).status, 403, "{href}");
                all.extend(changes(&admin.page(&href)));
            }
        }
        assert!(all.len() > 10, "{all:?}");
        let before = ground.stored();
        for action in &all {
            for name in ["id", "queue", "name", "worker"] {
                let came = viewer.post(action, &[(name, "osis")]);
                assert_eq!(came.status, 403, "{action}: {}", came.body);
            }
        }
        // Workers and censuses write nothing meanwhile.
        assert_eq!(ground.stored(), before);
        drop(open);
        first.stop();
        server.stop();
    }
}
