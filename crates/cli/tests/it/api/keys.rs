//! Keys of the API: who may call what.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};

use super::{Server, bearer};
use crate::common::{Ground, eventually, json as parsed, on_all_data};

fn key(ground: &Ground, name: &str, scope: &str) -> String {
    let made = ground.run(&["key", "create", name, "--scope", scope]).ok();
    made.stdout.trim().to_owned()
}

/// Returns true if a key of `scope` may call a method that needs `needed`.
fn allows(scope: &str, needed: &str) -> bool {
    scope == "admin" || needed == "viewer" || scope == needed
}

/// All methods, from the document: name, scope, verb and path.
fn methods(server: &Server, admin: &str) -> Vec<(String, String, String, String)> {
    let answer = server
        .send("GET", "/v1/openapi.json", &bearer(admin), "")
        .json();
    let mut methods = Vec::new();
    for (path, verbs) in answer["paths"].as_object().unwrap() {
        for (verb, operation) in verbs.as_object().unwrap() {
            // A stream does not end.
            if operation["x-stream"] == true {
                continue;
            }
            let name = operation["operationId"].as_str().unwrap().to_owned();
            let text = operation["description"].as_str().unwrap();
            let scope = text.split('`').nth(1).unwrap().to_owned();
            methods.push((name, scope, verb.to_uppercase(), path.clone()));
        }
    }
    methods
}

on_all_data! {
    fn each_method_is_allowed_as_the_table_says(ground: &Ground) {
        let keys = ["admin", "user", "registrar", "viewer"].map(|scope| (scope, key(ground, scope, scope)));
        let server = Server::start(ground, &[]);
        let methods = methods(&server, &keys[0].1);
        assert!(methods.len() > 40, "{}", methods.len());
        for (name, needed, verb, path) in &methods {
            let path: String = path.split('{').enumerate().map(|(at, part)| match at {
                0 => part.to_owned(),
                _ => format!("x{}", part.split_once('}').unwrap().1),
            }).collect();
            // No parameter is given, so that nothing changes.
            for (scope, key) in keys.iter().filter(|(scope, _)| *scope != "admin") {
                let is_allowed = allows(scope, needed);
                let code = server.rpc(name, &json!({"absent": 1}), &bearer(key))["error"]["code"].as_i64();
                assert_eq!(code == Some(-32003), !is_allowed, "{scope} {name}: {code:?}");
                let body = json!({"absent": 1}).to_string();
                let status = server.send(verb, &format!("{path}?absent=1"), &bearer(key), &body).status;
                assert_eq!(status == 403, !is_allowed, "{scope} {verb} {path}: {status}");
                assert!(status < 500, "{verb} {path}: {status}");
            }
            assert_eq!(server.rpc(name, &json!({}), "")["error"]["code"], -32001, "{name}");
            assert_eq!(server.send(verb, &path, "", "{}").status, 401, "{verb} {path}");
        }
        server.stop();
    }

    fn a_key_is_refused_after_its_end(ground: &Ground) {
        let (root, late) = (key(ground, "root", "admin"), key(ground, "late", "user"));
        let server = Server::start(ground, &[]);
        let status = |key: &str| server.send("GET", "/v1/system", &bearer(key), "").status;
        assert_eq!((status(&root), status(&late)), (200, 200));
        // A wrong secret of a name that exists, and a name that does not.
        let wrong = format!("mwk_late.{}", "A".repeat(43));
        assert_eq!((status(&wrong), status("mwk_nobody.AAAA")), (401, 401));
        let rotated = ground.run(&["key", "rotate", "late"]).ok().stdout.trim().to_owned();
        eventually("the old secret is refused", || (status(&late) != 200).then_some(()));
        eventually("the new one is not", || (status(&rotated) == 200).then_some(()));
        ground.run(&["key", "revoke", "late"]).ok();
        eventually("it is revoked", || (status(&rotated) != 200).then_some(()));
        ground.run(&["key", "revoke", "late"]).exits(5);
        let list = ground.run(&["key", "list", "--json"]).ok().jsons();
        assert_eq!((list.len(), &list[0]["name"]), (1, &Value::from("root")));
        // A key that is over, which the store keeps.
        let over = server.rpc("key.create", &json!({"name": "over", "scope": "user", "expires_at": "2020-01-01T00:00:00Z"}), &bearer(&root));
        let over = over["result"]["key"].as_str().unwrap().to_owned();
        eventually("it is refused as wrong", || (status(&over) == 401).then_some(()));
        assert_eq!(status(&root), 200);
        server.stop();
    }

    fn who_may_open_the_socket_needs_no_key(ground: &Ground) {
        let path = ground.path("api.sock");
        let words = ["supervisor", "--json", "--socket", path.to_str().unwrap()];
        let mut first = ground.start(&words);
        assert_eq!(parsed(&first.line())["api"][0], format!("unix:{}", path.display()));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let call = || {
            let mut stream = UnixStream::connect(&path).unwrap();
            let request = b"GET /v1/system HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            stream.write_all(request).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        assert!(call().contains("\"scope\":\"admin\""), "{}", call());
        let taken = ground.run(&words).exits(6);
        assert!(taken.stderr.contains("another process"), "{}", taken.stderr);
        // A socket that was left is replaced; at a regular end it is removed.
        first.kill();
        assert!(path.exists());
        let mut second = ground.start(&words);
        second.line();
        assert!(call().starts_with("HTTP/1.1 200"));
        second.stop();
        assert!(!path.exists());
        fs::write(&path, "mine").unwrap();
        ground.run(&words).exits(6);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    fn without_keys_nothing_is_served(ground: &Ground) {
        let refused = ground.run(&["supervisor", "--listen", "127.0.0.1:0"]).exits(2);
        assert!(refused.stderr.contains("meshwork key create"), "{}", refused.stderr);
        let server = Server::start(ground, &["--bootstrap-admin-key", "root"]);
        let (status, info) = server.rest("GET", "/v1/system", &json!({}));
        assert_eq!((status, &info["code"]), (401, &Value::from("authentication_required")));
        server.stop();
        // The store has no key itself.
        assert!(!ground.stored().contains("mwk_"));
    }
}

#[test]
fn keys_of_another_type_are_named() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.raw("SET hero:q:api_keys x");
    for args in [
        &["key", "list"][..],
        &["key", "create", "me", "--scope", "viewer"],
        &["key", "revoke", "me"],
    ] {
        let said = ground.run(args).exits(3).stderr;
        for words in ["the key hero:q:api_keys holds", "`meshwork doctor`"] {
            assert!(said.contains(words), "{args:?}: {said}");
        }
        assert!(!said.contains("repeat the call"), "{args:?}: {said}");
    }
}
