//! Spread queues over the API.

use serde_json::{Value, json};

use super::{Server, bearer};
use crate::common::on_both;

#[test]
fn a_job_goes_to_the_part_of_its_key_and_its_id_names_the_part() {
    on_both(|ground| {
        ground.run(&["actor", "create"]).ok();
        let server = Server::open(ground);
        let send = |verb: &str, path: &str, body: Value| server.rest(verb, path, &body);
        let job = json!({"type": "osis", "script": "6 * 7", "spread": true, "key": "k"});
        assert_eq!(send("POST", "/v1/jobs", job.clone()).0, 404, "not spread");
        assert_eq!(send("GET", "/v1/queues/osis/parts", json!({})).0, 404);
        let (status, made) = send("PUT", "/v1/queues/osis/parts", json!({"parts": 3}));
        assert_eq!((status, &made["moving"]), (200, &json!(0)), "{made}");
        let numbers = made["parts"].as_array().unwrap().iter();
        let numbers: Vec<_> = numbers.map(|part| part["context"].clone()).collect();
        assert_eq!(numbers, [json!(1), json!(2), json!(3)]);

        let worker = ground.worker(&["--spread", "--type", "osis"]);
        let run = |body: &Value| send("POST", "/v1/jobs/run", body.clone()).1;
        let ended = run(&job);
        assert_eq!(ended["output"], json!(42), "{ended}");
        let id = ended["id"].as_str().unwrap();
        assert_eq!(run(&job)["id"].as_str().unwrap()[..9], id[..9]);
        // The id is enough to find the job.
        assert_eq!(send("GET", &format!("/v1/jobs/{id}"), json!({})).1, ended);
        assert_eq!(
            send("GET", &format!("/v1/jobs/{id}/result"), json!({})).1,
            ended
        );
        let (status, events) = send("GET", &format!("/v1/jobs/{id}/events"), json!({}));
        assert_eq!(status, 200, "{events}");
        worker.stop();

        let waits = json!({"type": "osis", "script": "1", "spread": true, "delay": "1h"});
        let (_, made) = send("POST", "/v1/jobs", waits);
        let path = format!("/v1/jobs/{}/cancel", made["id"].as_str().unwrap());
        assert_eq!(
            send("POST", &path, json!({})).1["result"],
            json!("cancelled")
        );
        server.stop();
    });
}

#[test]
fn what_a_spread_queue_cannot_do_is_refused_by_name() {
    on_both(|ground| {
        ground
            .run(&["queue", "spread", "osis", "--parts", "2"])
            .ok();
        let server = Server::open(ground);
        let send = |verb: &str, path: &str, body: Value| server.rest(verb, path, &body);
        let job = |more: Value| {
            let mut job = json!({"type": "osis", "script": "1", "spread": true});
            let (all, more) = (job.as_object_mut().unwrap(), more.as_object().unwrap());
            all.extend(more.clone());
            send("POST", "/v1/jobs", job)
        };
        for (more, names) in [
            (json!({"context": 1}), "context and spread"),
            (json!({"id": "7"}), "an id of your own"),
            (json!({"batch": "b"}), "a batch"),
            (json!({"group": "io"}), "is not spread"),
        ] {
            let (status, error) = job(more);
            assert!((400..500).contains(&status), "{names}: {status}");
            assert!(error.to_string().contains(names), "{names}: {error}");
        }
        for body in [
            json!({}),
            json!({"parts": 2, "contexts": [1]}),
            json!({"parts": 65}),
        ] {
            let (status, error) = send("PUT", "/v1/queues/osis/parts", body);
            assert_eq!(status, 400, "{error}");
        }
        let spread = json!({"type": "osis", "script": "1", "spread": true});
        let schedule = json!({"every": "1h", "job": spread});
        let (status, error) = send("PUT", "/v1/schedules/s", schedule);
        assert_eq!(status, 400, "{error}");
        assert!(error.to_string().contains("spread"), "{error}");
        server.stop();
    });
}

/// The roles in all parts decide.
#[test]
fn another_actor_neither_enqueues_nor_reads() {
    on_both(|ground| {
        ground
            .run(&["queue", "spread", "osis", "--parts", "2"])
            .ok();
        ground.run(&["actor", "create", "--key", "eve.key"]).ok();
        let made = ground
            .run(&["key", "create", "eve", "--scope", "admin", "--actor", "2"])
            .ok();
        let eve = bearer(made.stdout.trim());
        let server = Server::start(ground, &[]);
        let status = |verb: &str, path: &str, body: Value| {
            server.send(verb, path, &eve, &body.to_string()).status
        };
        let job = json!({"type": "osis", "script": "1", "spread": true});
        assert_eq!(status("POST", "/v1/jobs", job), 403);
        assert_eq!(status("GET", "/v1/queues/osis/parts", json!({})), 403);
        let more = json!({"parts": 4});
        assert_eq!(status("PUT", "/v1/queues/osis/parts", more), 403);
        ground.file("one.rhai", "1");
        let id = ground.run(&["job", "enqueue", "one.rhai", "--spread"]).ok();
        let path = format!("/v1/jobs/{}", id.stdout.trim());
        assert_eq!(status("GET", &path, json!({})), 403);
        assert_eq!(status("DELETE", &path, json!({})), 403);
        server.stop();
    });
}
