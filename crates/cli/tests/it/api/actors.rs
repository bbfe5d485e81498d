//! Rights of actors outside of contexts, and keys that keys of actors make.

use meshwork::context::{Node, new_key};
use meshwork_model::api_key::Scope;
use serde_json::{Value, json};

use super::rights::key;
use super::socket::open_at;
use super::{Server, bearer};
use crate::common::{Ground, eventually, on_all_data, wait};

/// Names of Hero's first API, and the scope that each needs.
fn calls() -> [(&'static str, Value, Scope); 8] {
    let held = json!(["nodejob"]);
    [
        ("list_jobs", json!([]), Scope::Viewer),
        ("get_job_status", held.clone(), Scope::Viewer),
        ("get_job_logs", held.clone(), Scope::Viewer),
        ("list_runners", json!([]), Scope::Viewer),
        (
            "create_job",
            json!([{"script": "1", "script_type": "osis"}]),
            Scope::User,
        ),
        ("start_job", held.clone(), Scope::User),
        ("stop_job", held.clone(), Scope::User),
        ("delete_job", held, Scope::Admin),
    ]
}

on_all_data! {
    fn an_actor_has_no_rights_outside_of_contexts_but_granted_ones(ground: &Ground) {
        ground.run(&["context", "create", "--layout", "prefix"]).ok();
        ground.file("a.py", "1");
        ground.run(&["job", "enqueue", "a.py", "--id", "nodejob", "--delay", "1h"]).ok();
        let node = Node::of(&ground.broker());
        let secret = new_key();
        let actor = wait(node.trust(secret.public(), None)).unwrap();
        let number = actor.id.to_string();
        let keyed = bearer(&key(ground, "keyed", &["--scope", "user", "--actor", &number]));
        let server = Server::start(ground, &[]);
        let path = secret.public().to_string();
        for granted in [None, Some(Scope::Viewer), Some(Scope::User), Some(Scope::Admin)] {
            if let Some(scope) = granted {
                ground.run(&["actor", "grant-node", &number, "--scope", scope.as_str()]).ok();
            }
            // A login has the scope user, and so has the key.
            let has = granted.map(|scope| scope.and(Scope::User));
            let mut socket = eventually("the server knows the grant", || {
                let mut socket = open_at(&server, &path, "").ok().unwrap();
                socket.log_in(&secret);
                let me = socket.call("whoami", &json!([]))["result"].clone();
                assert_eq!(me["actor"], actor.id.0);
                (me["scope"] == json!(has.map(Scope::as_str))).then_some(socket)
            });
            for (name, params, needed) in &calls() {
                let may = has.is_some_and(|scope| scope.allows(*needed));
                for answer in [socket.call(name, params), server.rpc(name, params, &keyed)] {
                    assert_eq!(answer["error"]["code"] != -32003, may, "{granted:?} {name}: {answer}");
                }
            }
            for path in ["/metrics", "/v1/jobs", "/v1/queues", "/v1/schedules", "/v1/jobs/nodejob"] {
                let status = server.send("GET", path, &keyed, "").status;
                assert_eq!(status != 403, has.is_some(), "{granted:?} {path}: {status}");
            }
        }
        let shown = || ground.run(&["actor", "show", &number, "--json"]).ok().json();
        assert_eq!(shown()["mw_node_scope"], "admin");
        assert!(ground.run(&["actor", "list"]).ok().stdout.contains("trusted, node admin"));
        ground.run(&["actor", "revoke-node", &number]).ok();
        let said = ground.run(&["actor", "revoke-node", &number]).exits(1).stderr;
        assert!(said.contains("has no rights outside of contexts"), "{said}");
        assert_eq!(shown().get("mw_node_scope"), None);
        let trail = wait(node.audit(None, 100)).unwrap();
        let grants = trail.iter().filter(|entry| entry.what.ends_with(" node"));
        let grants: Vec<_> = grants.map(|it| (it.before.as_str(), it.after.as_str())).collect();
        assert_eq!(grants, [("", "viewer"), ("viewer", "user"), ("user", "admin"), ("admin", "")]);
        server.stop();
    }

    fn a_key_of_an_actor_makes_no_more_than_itself(ground: &Ground) {
        ground.run(&["context", "create", "--layout", "prefix"]).ok();
        ground.run(&["actor", "create", "--key", "two.key"]).ok();
        ground.run(&["actor", "grant-node", "2", "--scope", "admin"]).ok();
        let made = |name: &str, words: &[&str]| bearer(&key(ground, name, words));
        let root = made("root", &["--scope", "admin"]);
        let wide = made("wide", &["--scope", "admin", "--actor", "2"]);
        let bound = made("bound", &["--scope", "admin", "--context", "1", "--actor", "2", "--expires", "+1d"]);
        made("ann", &["--scope", "viewer", "--actor", "1"]);
        let server = Server::start(ground, &[]);
        let create = |mut params: Value, head: &str| {
            (params["name"], params["scope"]) = (json!("new"), json!("viewer"));
            server.rpc("key.create", &params, head)
        };
        for (head, params) in [
            (&wide, json!({"actor": "1"})),
            (&bound, json!({"actor": "1"})),
            (&bound, json!({"context": 2})),
            (&bound, json!({"expires_at": "2999-01-01T00:00:00Z"})),
        ] {
            assert_eq!(create(params.clone(), head)["error"]["code"], -32003, "{params}");
        }
        for (head, name) in [(&wide, "ann"), (&wide, "root"), (&bound, "wide"), (&bound, "ann"), (&bound, "none")] {
            for method in ["key.rotate", "key.revoke"] {
                let answer = server.rpc(method, &json!({"name": name}), head);
                assert_eq!(answer["error"]["code"], -32004, "{method} {name}: {answer}");
            }
        }
        let listed = |head: &str| {
            let list = server.rpc("key.list", &json!({}), head)["result"]["keys"].clone();
            let names = list.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap().to_owned());
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!([listed(&root), listed(&wide), listed(&bound)], ["ann bound root wide", "bound wide", "bound"]);
        // What it makes is of its actor, its context and its time.
        let made = create(json!({}), &bound)["result"].clone();
        assert_eq!((&made["actor"], &made["context"]), (&json!("2"), &json!(1)), "{made}");
        assert!(made["expires_at"].is_string(), "{made}");
        assert!(server.rpc("key.rotate", &json!({"name": "new"}), &bound)["result"]["key"].is_string());
        assert!(server.rpc("key.revoke", &json!({"name": "new"}), &bound)["result"].is_object());
        let hero = server.rpc("auth.create_key", &json!({"name": "h", "scope": "viewer"}), &bound)["result"].clone();
        assert_eq!((&hero["actor"], &hero["context"]), (&json!("2"), &json!(1)), "{hero}");
        // Who gets a number later must not get the rights of a key.
        for (params, word) in [(json!({"actor": "99"}), "no actor 99"), (json!({"actor": "1", "context": 9}), "context 9")] {
            let answer = create(params, &root);
            assert!(answer["error"]["message"].as_str().unwrap().contains(word), "{answer}");
        }
        let made = ground.run(&["key", "create", "mine", "--context", "1", "--json"]).ok().json();
        assert_eq!((&made["actor"], &made["scope"], &made["context"]), (&json!("1"), &json!("viewer"), &json!(1)));
        server.stop();
    }

    fn a_flow_is_deleted_by_who_has_submitted_it(ground: &Ground) {
        ground.run(&["context", "create", "--layout", "prefix"]).ok();
        ground.run(&["actor", "create", "--key", "two.key"]).ok();
        ground.run(&["context", "grant", "1", "admin", "2"]).ok();
        let own = bearer(&key(ground, "own", &["--scope", "user", "--actor", "1"]));
        let other = bearer(&key(ground, "other", &["--scope", "user", "--actor", "2"]));
        let server = Server::start(ground, &[]);
        let worker = ground.worker(&["--context", "1", "--type", "osis"]);
        let flow = json!({"flow": "flow: x\njobs: {a: {wait: {for: 1h}}}"});
        let made = server.rpc("flow.submit", &flow, &own);
        let id = json!({"id": made["result"]["id"]});
        assert!(id["id"].is_number(), "{made}");
        server.rpc("flow.cancel", &id, &own);
        eventually("it ends", || {
            let view = server.rpc("flow.get", &id, &own);
            (view["result"]["status"] == "error").then_some(())
        });
        let answer = server.rpc("flow.delete", &id, &other);
        assert_eq!(answer["error"]["code"], -32003, "{answer}");
        let answer = server.rpc("flow.delete", &id, &own);
        assert_eq!(answer["result"]["result"], "deleted", "{answer}");
        worker.stop();
        server.stop();
    }
}
