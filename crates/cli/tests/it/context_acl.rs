//! `meshwork context acl`: users of the server who may do in one context what their role permits, and nothing outside.

use crate::common::{Ground, eventually};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, ServerOptions};
use serde_json::Value;

/// The user of a server that has no others.
const NODE_USER: &str = "default";

/// Makes the ACL user and returns the URL of his login in a database.
fn login(ground: &Ground, server: &RealServer, context: &str, user: &str, database: u32) -> String {
    let made: Value = ground
        .run(&["context", "acl", context, user, "--json"])
        .ok()
        .json();
    let [name, password] =
        ["user", "password"].map(|field| made[field].as_str().unwrap().to_owned());
    assert_ne!(name, NODE_USER);
    server
        .url_of(database)
        .replacen("redis://", &format!("redis://{name}:{password}@"), 1)
}

/// Returns true if a server refuses a command for lack of rights.
fn is_denied(plain: &mut Plain, words: &[&str]) -> bool {
    match plain.ask::<()>(words) {
        Ok(()) => false,
        Err(error) => {
            error.to_string().contains("NOPERM") || error.to_string().contains("permission")
        }
    }
}

fn a_reader_reads_and_no_more(url: &str, record: &str, job: &str, queue: &str) {
    let mut reader = Plain::connect(url).unwrap();
    assert!(!is_denied(&mut reader, &["HGETALL", record]));
    assert!(is_denied(&mut reader, &["HSET", job, "status", "error"]));
    assert!(is_denied(&mut reader, &["RPOP", queue]));
    assert!(is_denied(&mut reader, &["FLUSHDB"]) && is_denied(&mut reader, &["ACL", "LIST"]));
    assert!(is_denied(&mut reader, &["RANDOMKEY"]) && is_denied(&mut reader, &["KEYS", "*"]));
    assert!(
        is_denied(&mut reader, &["SELECT", "8"])
            || is_denied(&mut reader, &["HGETALL", "context:8"])
    );
}

fn acl_users_are_kept_in_their_context(
    server: ServerOptions,
    context: &str,
    database: u32,
    prefix: &str,
) {
    let Some(server) = server.start() else { return };
    let ground = Ground::url(server.url());
    let layout = if prefix.is_empty() { "db" } else { "prefix" };
    ground
        .run(&["context", "create", "--id", context, "--layout", layout])
        .ok();
    ground.run(&["context", "create", "--id", "8"]).ok();
    let key = |name: &str| format!("{prefix}{name}");
    let mut node = Plain::connect(&server.url_of(database)).unwrap();
    node.ask::<i64>(&["HSET", &key("job:1:1"), "status", "dispatched"])
        .unwrap();
    node.ask::<i64>(&["LPUSH", &key("queue:v"), &key("job:1:1")])
        .unwrap();
    let record = key(&format!("context:{context}"));

    let url = login(&ground, &server, context, "reader", database);
    a_reader_reads_and_no_more(&url, &record, &key("job:1:1"), &key("queue:v"));

    let mut executor =
        Plain::connect(&login(&ground, &server, context, "executor", database)).unwrap();
    assert!(!is_denied(
        &mut executor,
        &["HSET", &key("job:1:1"), "status", "started"]
    ));
    assert!(is_denied(
        &mut executor,
        &["HSET", &record, "admins", "[9]"]
    ));
    assert!(is_denied(&mut executor, &["LPUSH", &key("queue:v"), "x"]));
    assert!(is_denied(&mut executor, &["EVAL", "return 1", "0"]));
    assert!(is_denied(
        &mut executor,
        &["COPY", &key("job:1:1"), &key("job:1:2")]
    ));
    assert!(!is_denied(&mut executor, &["RPOP", &key("queue:v")]));

    let mut admin = Plain::connect(&login(&ground, &server, context, "admin", database)).unwrap();
    assert!(!is_denied(&mut admin, &["HSET", &record, "readers", "[2]"]));
    assert!(is_denied(
        &mut admin,
        &["ACL", "SETUSER", "self", "allkeys"]
    ));
    assert!(is_denied(&mut admin, &["HSET", "actor:1", "pubkey", "x"]) || prefix.is_empty());

    // A user who is blocked when he is deleted gets no job.
    let url = login(&ground, &server, context, "executor", database);
    let queue = key("queue:v");
    let blocked = std::thread::spawn({
        let queue = queue.clone();
        move || {
            Plain::connect(&url)
                .unwrap()
                .ask::<(String, String)>(&["BRPOP", &queue, "60"])
        }
    });
    eventually("he is blocked", || {
        let clients: String = node.ask(&["INFO", "clients"]).unwrap();
        clients.contains("blocked_clients:1").then_some(())
    });
    ground
        .run(&["context", "grant", context, "executor", "1"])
        .ok();
    ground
        .run(&["context", "revoke", context, "executor", "1", "--acl"])
        .ok();
    assert!(blocked.join().unwrap().is_err());
    node.ask::<i64>(&["LPUSH", &queue, "next"]).unwrap();
    assert_eq!(node.ask::<i64>(&["LLEN", &queue]).unwrap(), 1);
}

#[test]
fn acl_users_on_redis_in_the_layout_prefix() {
    acl_users_are_kept_in_their_context(RealServer::redis(), "7", 0, "{ctx:7}:");
}

#[test]
fn acl_users_on_valkey_in_both_layouts() {
    acl_users_are_kept_in_their_context(RealServer::valkey(), "7", 7, "");
    acl_users_are_kept_in_their_context(RealServer::valkey(), "7", 0, "{ctx:7}:");
}

#[test]
fn where_no_acl_can_help_the_reason_is_said() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let ground = Ground::url(server.url());
    ground.run(&["context", "create", "--id", "7"]).ok();
    let said = ground
        .run(&["context", "acl", "7", "reader"])
        .exits(3)
        .stderr;
    assert!(said.contains("Redis has no ACL rule by database"), "{said}");
    let users: Vec<String> = server.say(&["ACL", "USERS"]).unwrap();
    assert_eq!(users, [NODE_USER]);
    let ground = Ground::embedded().unwrap();
    ground.run(&["context", "create", "--id", "7"]).ok();
    let said = ground
        .run(&["context", "acl", "7", "reader"])
        .exits(3)
        .stderr;
    assert!(said.contains("the embedded engine has no ACL"), "{said}");
}
