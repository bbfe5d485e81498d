//! Pages of jobs by state, and reasons of a wait.

use serde_json::{Value, json};

use super::Server;
use crate::common::{Ground, eventually, on_all_data};

impl Server {
    fn enqueue(&self, id: &str, more: &Value) {
        let mut body = json!({"type": "osis", "script": "1", "id": id});
        let more = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(more);
        let (status, made) = self.rest("POST", "/v1/jobs", &body);
        assert_eq!(status, 201, "{made}");
    }

    /// Returns the jobs of all pages of two jobs.
    fn listed(&self, query: &str) -> Vec<Value> {
        let (mut jobs, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/jobs?limit=2&{query}{cursor}");
            let (status, page) = self.rest("GET", &path, &json!({}));
            assert_eq!(status, 200, "{path}: {page}");
            jobs.extend(page["jobs"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return jobs,
            }
        }
    }

    fn ids(&self, query: &str) -> Vec<String> {
        let jobs = self.listed(query);
        let id = |job: &Value| job["id"].as_str().unwrap().to_owned();
        jobs.iter().map(id).collect()
    }
}

on_all_data! {
    fn jobs_are_listed_by_state(ground: &Ground) {
        let server = Server::open(ground);
        for id in ["n-1", "n-2", "n-3", "n-4", "n-5"] {
            server.enqueue(id, &json!({}));
        }
        server.enqueue("h-1", &json!({"priority": "high"}));
        for (id, delay) in [("d-2", "2h"), ("d-1", "1h"), ("d-3", "3h")] {
            server.enqueue(id, &json!({"delay": delay}));
        }
        server.enqueue("other", &json!({"type": "python", "script": "1", "delay": "90m"}));
        assert_eq!(server.ids("state=queued&queue=osis"), ["h-1", "n-1", "n-2", "n-3", "n-4", "n-5"]);
        assert_eq!(server.ids("state=delayed"), ["d-1", "other", "d-2", "d-3"]);
        let delayed = server.listed("state=delayed&queue=osis");
        assert_eq!(delayed.len(), 3);
        for job in &delayed {
            assert_eq!(job["at"], job["run_at"], "{job}");
        }
        assert_eq!(server.ids("state=running"), [""; 0]);
        for id in ["n-1", "n-3", "n-5"] {
            server.rest("POST", &format!("/v1/jobs/{id}/cancel"), &json!({}));
        }
        assert_eq!(server.ids("state=queued&queue=osis"), ["h-1", "n-2", "n-4"]);
        let mut ended = server.ids("state=ended");
        ended.sort_unstable();
        assert_eq!((ended, server.ids("state=dead")), (vec!["n-1".to_owned(), "n-3".into(), "n-5".into()], Vec::new()));
        server.stop();
    }

    fn running_jobs_and_dead_letters_are_listed(ground: &Ground) {
        let server = Server::open(ground);
        let worker = ground.worker(&["--type", "osis"]);
        server.enqueue("bad", &json!({"script": "throw \"boom\"", "wait": "60s"}));
        server.enqueue("long", &json!({"script": "loop { }"}));
        let running = eventually("it runs", || server.listed("state=running&queue=osis").pop());
        assert_eq!((&running["id"], running["at"].is_string()), (&json!("long"), true), "{running}");
        let (_, why) = server.rest("GET", "/v1/jobs/long/why", &json!({}));
        assert!(why["reasons"][0].as_str().unwrap().ends_with("runs it"), "{why}");
        assert_eq!((&why["state"], &why["waits"]), (&json!("running"), &json!([])));
        assert_eq!((server.ids("state=dead"), server.ids("state=ended")), (vec!["bad".to_owned()], vec!["bad".to_owned()]));
        let (_, why) = server.rest("GET", "/v1/jobs/bad/why", &json!({}));
        assert!(why["reasons"][0].as_str().unwrap().contains("boom"), "{why}");
        server.rest("POST", "/v1/jobs/long/cancel", &json!({}));
        eventually("it is stopped", || server.ids("state=running").is_empty().then_some(()));
        worker.stop();
        server.stop();
    }

    fn reasons_of_a_wait_are_alike_on_all_ways(ground: &Ground) {
        let server = Server::open(ground);
        server.enqueue("first", &json!({}));
        server.enqueue("late", &json!({"delay": "1h"}));
        server.enqueue("last", &json!({"depends_on": ["first", "late"]}));
        for (id, state, kinds) in [
            ("first", "queued", vec!["no_worker", "position"]),
            ("late", "delayed", vec!["time", "no_worker"]),
            ("last", "waiting", vec!["prerequisite", "prerequisite", "no_worker"]),
        ] {
            let (status, why) = server.rest("GET", &format!("/v1/jobs/{id}/why"), &json!({}));
            assert_eq!((status, &why["state"]), (200, &json!(state)), "{why}");
            let waits = why["waits"].as_array().unwrap();
            let found: Vec<_> = waits.iter().map(|one| one["reason"].as_str().unwrap()).collect();
            assert_eq!(found, kinds, "{why}");
            assert_eq!(server.rpc("job.why", &json!({"id": id}), "")["result"], why);
            assert_eq!(ground.run(&["job", "why", id, "--json"]).ok().json(), why);
            let shown = ground.run(&["job", "show", id, "--json"]).ok().json();
            assert_eq!((&shown["reasons"], &shown["waits"]), (&why["reasons"], &why["waits"]));
        }
        server.stop();
    }
}
