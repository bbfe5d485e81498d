//! Methods over all parts of spread queues.

use std::collections::BTreeSet;

use meshwork_test_servers::servers::{RealCluster, RealServer};
use serde_json::{Value, json};

use super::{Api, Server, bearer};
use crate::common::{Ground, eventually, on_both};

/// A server of a queue `osis` with parts, which may have other words for its commands.
struct Site<'a> {
    ground: &'a Ground,
    server: Server,
    words: &'a [&'a str],
}

impl<'a> Site<'a> {
    fn new(ground: &'a Ground, parts: &str, words: &'a [&'a str]) -> Self {
        let site = |args: &[&str]| ground.run(&[args, words].concat()).ok();
        site(&["queue", "spread", "osis", "--parts", parts]);
        let server = Server::start(ground, &[&["--insecure-no-auth"], words].concat());
        Self {
            ground,
            server,
            words,
        }
    }

    fn send(&self, verb: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.server.rest(verb, path, &body);
        assert!(matches!(status, 200..=202), "{verb} {path}: {answer}");
        answer
    }

    fn get(&self, path: &str) -> Value {
        self.send("GET", path, json!({}))
    }

    fn spread(&self, path: &str) -> Value {
        self.send("POST", path, json!({"spread": true}))
    }

    /// Enqueues a job of this key, and returns its id.
    fn job(&self, key: u32, more: &Value) -> String {
        let mut job =
            json!({"type": "osis", "script": "1", "spread": true, "key": key.to_string()});
        let more = more.as_object().unwrap().clone();
        job.as_object_mut().unwrap().extend(more);
        let made = self.send("POST", "/v1/jobs", job);
        made["id"].as_str().unwrap().to_owned()
    }

    fn jobs(&self, keys: u32) -> BTreeSet<String> {
        (0..keys).map(|key| self.job(key, &json!({}))).collect()
    }
}

/// Returns the part that an id names.
fn part_of(id: &Value) -> Value {
    let id = id.as_str().unwrap().strip_prefix("{ctx:").unwrap();
    let (part, _) = id.split_once('}').unwrap();
    part.parse::<u32>().unwrap().into()
}

/// Reads all pages of a list. Each item names its part.
fn pages(api: &Api, path: &str, items: &str) -> BTreeSet<String> {
    let (mut ids, mut cursor) = (BTreeSet::new(), String::new());
    for _ in 0..100 {
        let (status, page) = api.rest("GET", &format!("{path}{cursor}"), &json!({}));
        assert_eq!(status, 200, "{page}");
        for item in page[items].as_array().unwrap() {
            assert_eq!(item["context"], part_of(&item["id"]), "{item}");
            assert!(
                ids.insert(item["id"].as_str().unwrap().to_owned()),
                "{item}"
            );
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return ids,
        }
    }
    panic!("{path} has no end");
}

/// Sets limits, and drains and resumes the queue, which is paused.
fn is_limited_and_drained(site: &Site<'_>) {
    let limits = json!({"spread": true, "concurrency": 4, "length": 100});
    let limited = site.send("PUT", "/v1/queues/osis/limits", limits);
    assert_eq!(limited["limits_per_part"], true);
    for part in limited["parts"].as_array().unwrap() {
        assert_eq!(
            (&part["concurrency"], &part["limit"]),
            (&json!(4), &json!(100))
        );
        assert_eq!(part["limits_per_part"], false);
    }
    let resumed = site.spread("/v1/queues/osis/resume");
    assert_eq!(resumed["paused"], false);
    site.spread("/v1/queues/osis/drain");
    let refused = json!({"type": "osis", "script": "1", "spread": true});
    let (status, error) = site.server.rest("POST", "/v1/jobs", &refused);
    assert_eq!(status, 409, "{error}");
    site.spread("/v1/queues/osis/resume");
}

/// Pauses, lists, counts, limits, resumes, cancels and purges.
fn uses_all_parts(site: &Site<'_>) {
    let paused = site.spread("/v1/queues/osis/pause");
    assert_eq!(paused["paused"], true, "{paused}");
    let ids = site.jobs(12);
    assert_eq!(ids.len(), 12);
    for path in ["state=queued&queue=osis", "queue=osis", "type=osis"] {
        let path = format!("/v1/jobs?spread=true&limit=5&{path}");
        assert_eq!(pages(&site.server, &path, "jobs"), ids, "{path}");
    }
    let state = site.get("/v1/queues/osis?spread=true");
    assert_eq!(state["waiting"], 12, "{state}");
    assert_eq!(state["queue"], "osis");
    let parts = state["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 3);
    let waiting = parts.iter().map(|part| part["waiting"].as_u64().unwrap());
    assert_eq!(waiting.sum::<u64>(), 12);
    let numbers: Vec<_> = parts.iter().map(|part| part["context"].clone()).collect();
    assert_eq!(numbers, [json!(1), json!(2), json!(3)]);
    assert!(parts.iter().all(|part| part["paused"] == true));
    let listed = site.get("/v1/queues?spread=true");
    let queues = listed["queues"].as_array().unwrap();
    let waiting = queues
        .iter()
        .map(|queue| queue["waiting"].as_u64().unwrap());
    assert_eq!(waiting.sum::<u64>(), 12, "{listed}");
    is_limited_and_drained(site);

    let (mut cancelled, mut cursor) = (BTreeSet::new(), Value::Null);
    loop {
        let body = json!({"spread": true, "queue": "osis", "limit": 5, "cursor": cursor});
        let page = site.send("POST", "/v1/jobs/cancel", body);
        for job in page["jobs"].as_array().unwrap() {
            assert_eq!(
                (&job["result"], &job["context"]),
                (&json!("cancelled"), &part_of(&job["id"]))
            );
            cancelled.insert(job["id"].as_str().unwrap().to_owned());
        }
        cursor = page["next"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(cancelled, ids);
    let again = json!({"spread": true, "queue": "osis"});
    assert_eq!(
        site.send("POST", "/v1/jobs/cancel", again)["jobs"],
        json!([])
    );
    site.jobs(6);
    let purged = site.spread("/v1/queues/osis/purge");
    assert_eq!(
        purged,
        json!({"queue": "osis", "deleted": 6, "more": false})
    );
    let audit = site
        .ground
        .run(&[&["context", "audit", "1", "--json"], site.words].concat());
    let audit = audit.ok().stdout;
    for what in ["pause queue", "limit queue", "cancel jobs", "purge queue"] {
        assert!(audit.contains(what), "{what}: {audit}");
    }
}

#[test]
fn methods_use_all_parts() {
    on_both(|ground| {
        ground.run(&["actor", "create"]).ok();
        let site = Site::new(ground, "3", &[]);
        uses_all_parts(&site);
        site.server.stop();
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_use_all_parts_on_three_nodes() {
    let Some(cluster) = RealCluster::start(RealServer::redis().append_only(), 0).await else {
        return;
    };
    let ground = Ground::url(cluster.url());
    let site = Site::new(&ground, "3", &["--namespace", "{hero}"]);
    uses_all_parts(&site);
    site.server.stop();
}

#[test]
fn dead_letters_of_all_parts_are_listed_retried_and_deleted() {
    on_both(|ground| {
        let site = Site::new(ground, "3", &[]);
        let fails = json!({"script": "throw \"no\""});
        let ids: BTreeSet<_> = (0..8).map(|key| site.job(key, &fails)).collect();
        let worker = ground.worker(&["--spread", "--type", "osis"]);
        let all = "/v1/dead?spread=true&queue=osis&limit=3";
        let dead = || pages(&site.server, all, "letters");
        eventually("all jobs are dead letters", || {
            (dead() == ids).then_some(())
        });
        worker.stop();
        // The id is enough.
        let id = ids.first().unwrap();
        assert_eq!(site.get(&format!("/v1/dead/{id}"))["id"], json!(id));
        site.send("POST", &format!("/v1/dead/{id}/retry"), json!({}));
        assert_eq!(dead().len(), 7);
        let last = ids.last().unwrap();
        site.send("DELETE", &format!("/v1/dead/{last}"), json!({}));
        let four = json!({"spread": true, "type": "osis", "limit": 4});
        let retried = site.send("POST", "/v1/dead/retry", four);
        let results: Vec<_> = retried["jobs"].as_array().unwrap().iter().collect();
        assert_eq!(results.len(), 4, "{retried}");
        assert!(
            results.iter().all(|job| job["result"] == "queued"),
            "{retried}"
        );
        assert_eq!(dead().len(), 2);
        let rest = json!({"spread": true, "reason": "failed"});
        let deleted = site.send("POST", "/v1/dead/delete", rest);
        assert_eq!(deleted["jobs"].as_array().unwrap().len(), 2, "{deleted}");
        assert!(dead().is_empty());
        let waiting = site.get("/v1/queues/osis?spread=true")["waiting"].clone();
        assert_eq!(waiting, 5);
        site.server.stop();
    });
}

#[test]
fn wrong_calls_are_refused_by_name() {
    on_both(|ground| {
        let site = Site::new(ground, "2", &[]);
        let refused = |verb: &str, path: &str, body: Value, names: &str| {
            let (status, error) = site.server.rest(verb, path, &body);
            assert!((400..500).contains(&status), "{path}: {status} {error}");
            assert!(error.to_string().contains(names), "{names}: {error}");
        };
        let both = json!({"spread": true, "context": 1});
        let spread = json!({"spread": true});
        let none = json!({});
        refused("POST", "/v1/queues/osis/pause", both, "context and spread");
        refused(
            "POST",
            "/v1/queues/python/pause",
            spread.clone(),
            "python is not spread",
        );
        refused(
            "GET",
            "/v1/jobs?spread=true&queue=python",
            none.clone(),
            "python is not spread",
        );
        refused(
            "GET",
            "/v1/jobs?spread=true&state=queued",
            none.clone(),
            "queue: give one",
        );
        refused(
            "GET",
            "/v1/jobs?spread=true&cursor=x",
            none.clone(),
            "cursor",
        );
        refused("GET", "/v1/dead?spread=true&cursor=1/x", none, "cursor");
        refused("POST", "/v1/jobs/cancel", spread.clone(), "give a filter");
        refused("POST", "/v1/dead/delete", spread, "give a filter");
        let limits = json!({"spread": true, "rate": "x"});
        refused("PUT", "/v1/queues/osis/limits", limits, "rate");
        site.server.stop();
    });
}

#[test]
fn a_role_in_one_part_changes_nothing_in_any() {
    on_both(|ground| {
        let site = Site::new(ground, "2", &[]);
        let ids = site.jobs(3);
        ground.run(&["actor", "create", "--key", "eve.key"]).ok();
        let made = ground
            .run(&["key", "create", "eve", "--scope", "admin", "--actor", "2"])
            .ok();
        let eve = bearer(made.stdout.trim());
        ground.run(&["context", "grant", "1", "admin", "2"]).ok();
        let server = Server::start(ground, &[]);
        for path in [
            "/v1/queues/osis/pause",
            "/v1/queues/osis/purge",
            "/v1/jobs/cancel",
        ] {
            let body = json!({"spread": true, "queue": "osis"}).to_string();
            let body = match path {
                "/v1/jobs/cancel" => body,
                _ => json!({"spread": true}).to_string(),
            };
            let answer = server.send("POST", path, &eve, &body);
            assert_eq!(answer.status, 403, "{path}");
            assert!(answer.json().to_string().contains("part 2"), "{path}");
        }
        server.stop();
        let state = site.get("/v1/queues/osis?spread=true");
        assert_eq!(
            (&state["paused"], &state["waiting"]),
            (&json!(false), &json!(3))
        );
        assert_eq!(
            pages(&site.server, "/v1/jobs?spread=true&queue=osis", "jobs"),
            ids
        );
        site.server.stop();
    });
}

#[test]
fn a_flow_goes_to_a_part_of_the_queue_that_it_names() {
    on_both(|ground| {
        let site = Site::new(ground, "2", &[]);
        ground.run(&["context", "create"]).ok();
        let flow = |spread: &str| {
            let spread = format!("{{\"flow\": \"f\"{spread}, ");
            spread + "\"jobs\": {\"a\": {\"script\": \"1\", \"type\": \"osis\"}}}"
        };
        let own = flow(", \"spread\": \"osis\"");
        let submit = |body: Value| site.server.rest("POST", "/v1/flows", &body);
        let parts = [json!(1), json!(2)];
        for body in [
            json!({"flow": own}),
            json!({"flow": flow(""), "spread": "osis"}),
        ] {
            let (_, made) = submit(body);
            assert!(parts.contains(&made["context"]), "{made}");
        }
        // The parameters go before the file.
        let (_, made) = submit(json!({"flow": own, "context": 3}));
        assert_eq!(made["context"], 3, "{made}");
        for (body, names) in [
            (
                json!({"flow": own, "spread": "python"}),
                "python is not spread",
            ),
            (
                json!({"flow": flow(", \"spread\": \"v\"")}),
                "queue v is not spread",
            ),
            (
                json!({"flow": own, "spread": "osis", "context": 3}),
                "context and spread",
            ),
            (json!({"flow": own, "spread": "a:b"}), "spread"),
        ] {
            let (status, error) = submit(body);
            assert!((400..500).contains(&status), "{names}: {status}");
            assert!(error.to_string().contains(names), "{names}: {error}");
        }
        site.server.stop();
    });
}
