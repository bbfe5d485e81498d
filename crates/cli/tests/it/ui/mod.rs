//! The dashboard, as a browser without JavaScript sees it.

mod away;
mod browser;
mod buttons;
mod cost;
mod hostile;
mod live;
mod many;
mod pages;
mod sign_in;

use scraper::{Html, Selector};

use crate::api::{Api, Server};
use crate::common::http::Came;
use crate::common::{Ground, json as parsed};

/// The header that browsers send with forms of a page of the same server.
pub(crate) const FROM_HERE: &str = "sec-fetch-site: same-origin\r\n";

/// A browser with the cookie of a session.
pub(crate) struct Browser {
    api: Api,
    pub(crate) cookie: String,
}

/// A key of this scope.
fn key(ground: &Ground, name: &str, scope: &str) -> String {
    let made = ground.run(&["key", "create", name, "--scope", scope]).ok();
    made.stdout.trim().to_owned()
}

impl Browser {
    /// Opens a session by a key, or by the token of a link.
    pub(crate) fn sign_in(api: &Api, key: &str) -> Self {
        let mut browser = Self {
            api: api.clone(),
            cookie: String::new(),
        };
        let came = browser.post("/ui/sign-in", &[("key", key)]);
        assert_eq!(came.status, 303, "{}", came.body);
        let cookie = came.header("set-cookie").unwrap();
        // The head is in small letters, and the text of a cookie is not.
        assert!(
            cookie.contains("httponly") && cookie.contains("samesite=strict"),
            "{cookie}"
        );
        came.cookie().clone_into(&mut browser.cookie);
        browser
    }

    /// A browser where no sign-in is needed.
    fn open(api: &Api) -> Self {
        Self {
            api: api.clone(),
            cookie: String::new(),
        }
    }

    fn headers(&self) -> String {
        match self.cookie.as_str() {
            "" => String::new(),
            cookie => format!("cookie: {cookie}\r\n"),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Came {
        self.api.send("GET", path, &self.headers(), "")
    }

    /// Reads a page that has to be there.
    fn page(&self, path: &str) -> Html {
        let came = self.get(path);
        assert_eq!(came.status, 200, "{path}: {}", came.body);
        Html::parse_document(&came.body)
    }

    /// Sends a form.
    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Came {
        self.post_with(path, fields, FROM_HERE)
    }

    fn post_with(&self, path: &str, fields: &[(&str, &str)], headers: &str) -> Came {
        let encoded = |text: &str| {
            let bytes = text.bytes().map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                    char::from(byte).to_string()
                }
                byte => format!("%{byte:02X}"),
            });
            bytes.collect::<String>()
        };
        let pairs = fields
            .iter()
            .map(|(name, text)| format!("{name}={}", encoded(text)));
        let body = pairs.collect::<Vec<_>>().join("&");
        self.api
            .send("POST", path, &(self.headers() + headers), &body)
    }
}

impl Came {
    /// Name and text of the cookie that the response sets, as they were written.
    fn cookie(&self) -> &str {
        let line = self
            .raw_head
            .lines()
            .find(|line| line.to_lowercase().starts_with("set-cookie: "));
        let cookie = line.unwrap().split_once(": ").unwrap().1;
        cookie.split(';').next().unwrap()
    }

    fn leads_to(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.body);
        let line = self
            .raw_head
            .lines()
            .find(|line| line.to_lowercase().starts_with("location: "));
        line.unwrap().split_once(": ").unwrap().1
    }
}

fn selected(text: &str) -> Selector {
    Selector::parse(text).unwrap()
}

/// The text of all elements that match.
fn texts(page: &Html, selector: &str) -> Vec<String> {
    let selector = selected(selector);
    let elements = page.select(&selector);
    elements.map(|it| it.text().collect()).collect()
}

/// The values of an attribute of all elements that match.
fn values(page: &Html, selector: &str, attribute: &str) -> Vec<String> {
    let elements = selected(selector);
    let elements = page.select(&elements);
    elements
        .filter_map(|it| Some(it.attr(attribute)?.to_owned()))
        .collect()
}

/// A store with jobs of all states, its API, and a browser without a sign-in.
fn filled(ground: &Ground) -> (Server, Browser) {
    let server = Server::open(ground);
    let worker = ground.worker(&["--type", "osis"]);
    let create = |id: &str, more: serde_json::Value| {
        let mut body = serde_json::json!({"type": "osis", "script": "40 + 2", "id": id});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (status, made) = server.rest("POST", "/v1/jobs", &body);
        assert!(status < 300, "{made}");
    };
    create("done", serde_json::json!({"wait": "60s", "tags": ["web"]}));
    create(
        "bad",
        serde_json::json!({"script": "throw \"boom\"", "wait": "60s"}),
    );
    create("late", serde_json::json!({"delay": "1h"}));
    worker.stop();
    create("first", serde_json::json!({}));
    create("last", serde_json::json!({"depends_on": ["first", "late"]}));
    create("other", serde_json::json!({"type": "python"}));
    ground.file("f.rhai", "1");
    ground
        .run(&[
            "schedule",
            "add",
            "nightly",
            "--cron",
            "0 2 * * *",
            "f.rhai",
        ])
        .ok();
    let browser = Browser::open(&server.api);
    (server, browser)
}

/// A dashboard of its own with these further words, and the token of its link.
pub(crate) fn command(ground: &Ground, words: &[&str]) -> (crate::common::Running, Api, String) {
    let first = ["dashboard", "--listen", "127.0.0.1:0", "--json"];
    let mut running = ground.start(&[&first, words].concat());
    let link = parsed(&running.line())["link"].as_str().unwrap().to_owned();
    let (url, token) = link.split_once('#').unwrap();
    let (address, _) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let api = Api {
        address: address.to_owned(),
    };
    (running, api, token.to_owned())
}
