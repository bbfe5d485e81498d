//! Revoked rights: each kind of connection that uses them ends.

use std::thread::JoinHandle;
use std::time::Instant;

use meshwork::context::{Node, new_key};
use meshwork_model::actor_key::SecretKey;
use meshwork_test_servers::say;
use serde_json::{Value, json};
use tungstenite::protocol::frame::coding::CloseCode;

use super::mcp::Agent;
use super::rights::key;
use super::socket::{Socket, open_at};
use super::sse::Events;
use super::{Server, bearer};
use crate::common::{Ground, eventually, wait};
use crate::ui::Browser;

/// Reads a job as an agent. Returns the kind of the error, or nothing.
fn error(agent: &mut Agent, job: &str) -> Option<String> {
    let (is_error, data) = agent.call("get_job", &json!({"id": job}));
    let kind = || data.as_str().unwrap().split(':').next().unwrap().to_owned();
    is_error.then(kind)
}

/// A way to lose rights.
struct Way {
    name: &'static str,
    /// Further words for the key.
    key: &'static [&'static str],
    /// Commands that give the actor its rights, and take them; `N` is its number.
    gives: &'static [&'static str],
    takes: &'static [&'static str],
    /// Id of a job that it may read.
    job: &'static str,
    /// True if a login with a nonce ends too.
    logins: bool,
}

const GRANT: &[&str] = &["actor", "grant-node", "N", "--scope", "user"];

const WAYS: [Way; 5] = [
    Way {
        name: "actor",
        key: &[],
        gives: GRANT,
        takes: &["actor", "revoke", "N"],
        job: "held",
        logins: true,
    },
    Way {
        name: "grant",
        key: &[],
        gives: GRANT,
        takes: &["actor", "revoke-node", "N"],
        job: "held",
        logins: true,
    },
    Way {
        name: "deleted",
        key: &[],
        gives: GRANT,
        takes: &["key", "delete", "deleted"],
        job: "held",
        logins: false,
    },
    Way {
        name: "rotated",
        key: &[],
        gives: GRANT,
        takes: &["key", "rotate", "rotated"],
        job: "held",
        logins: false,
    },
    Way {
        name: "role",
        key: &["--context", "1"],
        gives: &["context", "grant", "1", "reader", "N"],
        takes: &["context", "revoke", "1", "reader", "N"],
        job: "1:1",
        logins: false,
    },
];

/// Connections of an actor and its key.
struct Open {
    keyed: Socket<std::net::TcpStream>,
    login: Socket<std::net::TcpStream>,
    events: Events,
    log: Events,
    page: Events,
    browser: Browser,
    waits: JoinHandle<(Value, Value)>,
    agent: Agent,
}

impl Open {
    fn new(ground: &Ground, server: &Server, (way, key): (&Way, &str), secret: &SecretKey) -> Self {
        let head = bearer(key);
        let mut keyed = open_at(server, "rpc", &head).ok().unwrap();
        keyed.subscribe(&json!({"topic": "events"}));
        let path = secret.public().to_string();
        let mut login = open_at(server, &path, "").ok().unwrap();
        login.log_in(secret);
        let browser = Browser::sign_in(&server.api, key);
        let cookie = format!("cookie: {}\r\n", browser.cookie);
        let wait = |api: super::Api, head: String, rest: bool| {
            let job = way.job;
            move || match rest {
                true => api
                    .send("GET", &format!("/v1/jobs/{job}/result?wait=5m"), &head, "")
                    .json()["code"]
                    .clone(),
                false => {
                    api.rpc("job.result", &json!({"id": job, "wait": "5m"}), &head)["error"]["code"]
                        .clone()
                }
            }
        };
        let by_rest = std::thread::spawn(wait(server.api.clone(), head.clone(), true));
        let by_rpc = std::thread::spawn(wait(server.api.clone(), head.clone(), false));
        let mut agent = Agent::start(ground, &[], &[("MESHWORK_API_KEY", key)]);
        assert_eq!(error(&mut agent, way.job), None, "{}", way.name);
        let log = format!("/v1/jobs/{}/logs?follow=true", way.job);
        Self {
            keyed,
            login,
            events: Events::open(server, "/v1/events", &head),
            log: Events::open(server, &log, &head),
            page: Events::open(server, "/ui/live?topic=figures", &cookie),
            browser,
            waits: std::thread::spawn(|| (by_rest.join().unwrap(), by_rpc.join().unwrap())),
            agent,
        }
    }

    /// Waits until all of them have ended.
    fn end(mut self, way: &Way) {
        let name = way.name;
        let ended = |events: &mut Events| {
            while events
                .try_next()
                .is_some_and(|event| event.kind != "closed")
            {}
        };
        ended(&mut self.events);
        ended(&mut self.log);
        while self.page.try_next().is_some() {}
        assert_eq!(self.keyed.closed(), Some(CloseCode::Policy), "{name}");
        assert_eq!(
            self.waits.join().unwrap(),
            (json!("forbidden"), json!(-32003)),
            "{name}"
        );
        if way.logins {
            assert_eq!(self.login.closed(), Some(CloseCode::Policy), "{name}");
        } else {
            assert_eq!(
                self.login.call("whoami", &json!([]))["result"]["authenticated"],
                true,
                "{name}"
            );
        }
        eventually("the session of pages ends", || {
            let came = self.browser.get("/ui/jobs?state=delayed");
            (came.status == 303).then_some(())
        });
        eventually("the agent is refused", || error(&mut self.agent, way.job));
    }
}

#[test]
fn each_kind_of_connection_ends_with_its_rights() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.file("a.py", "1");
    let create = ["context", "create", "--layout", "prefix"];
    ground.run(&create).ok();
    ground
        .run(&["job", "enqueue", "a.py", "--id", "held", "--delay", "1h"])
        .ok();
    ground
        .run(&["job", "enqueue", "a.py", "--context", "1", "--delay", "1h"])
        .ok();
    let root = bearer(&key(&ground, "root", &["--scope", "admin"]));
    let server = Server::start(&ground, &[]);
    let node = Node::of(&ground.broker());
    for way in &WAYS {
        let secret = new_key();
        let actor = wait(node.trust(secret.public(), None)).unwrap();
        let number = actor.id.to_string();
        let named = |words: &'static [&'static str]| -> Vec<String> {
            words
                .iter()
                .map(|word| {
                    if *word == "N" {
                        number.clone()
                    } else {
                        (*word).to_owned()
                    }
                })
                .collect()
        };
        ground.run(&named(way.gives)).ok();
        let words = [&["--scope", "user", "--actor", &number][..], way.key].concat();
        let made = key(&ground, way.name, &words);
        let open = Open::new(&ground, &server, (way, &made), &secret);
        let began = Instant::now();
        ground.run(&named(way.takes)).ok();
        open.end(way);
        say(format!(
            "{}: all ended {:?} after the command began",
            way.name,
            began.elapsed()
        ));
    }
    assert_eq!(server.send("GET", "/v1/jobs/held", &root, "").status, 200);
    server.stop();
}
