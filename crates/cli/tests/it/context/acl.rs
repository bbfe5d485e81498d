//! `meshwork context acl`: users of the server who may do in one context what their role permits, and nothing outside.

use crate::common::{Ground, Running, eventually, json};
use meshwork_test_servers::plain::Plain;
use meshwork_test_servers::servers::{RealServer, ServerOptions};
use serde_json::Value;

/// The user of a server that has no others.
const NODE_USER: &str = "default";
/// The database of actors, and of a URL that names none.
const NODE_DATABASE: u32 = 0;

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

/// Starts the command as the user of `url`, with the key file of `ground`.
fn start_as(ground: &Ground, url: &str, args: &[&str]) -> Running {
    let mut command = ground.command(args);
    command.env("REDIS_URL", url);
    Running::start(command)
}

/// Commands for what docs/permissions.md grants an admin, as the ACL user of context 7. In the layout `prefix`, the user may
/// not scan. Context 8 is another's for the server.
fn every_command_of_an_admin_works(ground: &Ground, admin: &str) {
    let as_admin = |args: &[&str]| start_as(ground, admin, args).ended();
    ground.run(&["context", "create", "--id", "8"]).ok();
    let mut supervisor = ground.start(&["supervisor", "--json"]);
    assert_eq!(json(&supervisor.line())["event"], "ready");
    ground.file(
        "flow.yaml",
        "flow: f\njobs:\n  a: {type: osis, script: \"1\"}\n",
    );
    let job = |args: &[&str]| {
        as_admin(&[&["job"], args, &["--context", "7"]].concat())
            .ok()
            .stdout
    };
    let id = job(&["enqueue", "sum.rhai", "--delay", "1h"]);
    let id = id.trim();
    assert!(job(&["list", "--json"]).contains(id));
    for command in [
        &["show", id][..],
        &["run-now", id],
        &["cancel", id],
        &["retry", id],
    ] {
        job(command);
    }
    job(&["cancel", id]);
    job(&["delete", id]);
    job(&["approve", "gate"]);
    let other = |args: &[&str]| as_admin(&[args, &["--context", "7"]].concat()).ok().stdout;
    assert!(other(&["runner", "list", "--json"]).contains("20"));
    other(&["flow", "submit", "flow.yaml"]);
    assert!(other(&["flow", "list", "--json"]).contains("\"f\""));
    for args in [
        &["set", "7", "--unsigned", "refuse"][..],
        &["revoke", "7", "reader", "1"],
        &["grant", "7", "reader", "1"],
    ] {
        as_admin(&[&["context"], args].concat()).ok();
    }

    // Messages in both directions; only the coordinator reads the other context.
    let sent = other(&["message", "send", "8", "hello"]);
    assert!(other(&["message", "list", "--json"]).contains("hello"));
    eventually("it arrives", || {
        let read = ground
            .run(&["message", "read", "--context", "8", "--json"])
            .ok()
            .stdout;
        read.contains("hello").then_some(())
    });
    other(&["message", "wait", sent.trim()]);
    let sent = ground
        .run(&["message", "send", "7", "answer", "--context", "8"])
        .ok()
        .stdout;
    eventually("it is read", || {
        other(&["message", "read", "--json"])
            .contains("answer")
            .then_some(())
    });
    ground
        .run(&["message", "wait", sent.trim(), "--context", "8"])
        .ok();
    // The target decides, as before.
    other(&["message", "send", "8", "--job", "sum.rhai"]);
    supervisor.stop().ok();
}

/// A worker without --runner finds the runner that an admin's user registered for it.
fn runs_without_a_number(ground: &Ground, admin: &str, runner: &str) {
    let work = ["worker", "--json", "--context", "7", "--type", "osis"];
    let mut worker = start_as(ground, admin, &work);
    let number = json(&worker.line())["runner"].clone();
    worker.stop().ok();
    let mut worker = start_as(ground, runner, &work);
    assert_eq!(json(&worker.line())["runner"], number);
    worker.stop().ok();
}

/// The trail outlives its users, and nobody learns which other contexts there are.
fn the_trail_and_the_registry_are_safe(url: &str, prefix: &str, may_write: bool) {
    let mut user = Plain::connect(url).unwrap();
    let trail = format!("{prefix}mw:audit");
    for words in [
        &["DEL", &trail][..],
        &["PEXPIRE", &trail, "1"],
        &["SET", &trail, "x"],
        &["EVAL", "return redis.call('DEL', KEYS[1])", "1", &trail],
    ] {
        assert!(is_denied(&mut user, words), "{words:?}");
    }
    assert_eq!(
        is_denied(&mut user, &["XADD", &trail, "*", "what", "x"]),
        !may_write
    );
    assert!(!is_denied(&mut user, &["XRANGE", &trail, "-", "+"]));
    if !prefix.is_empty() {
        assert!(is_denied(&mut user, &["HGETALL", "mw:contexts"]));
    }
}

fn our_programs_work_as_acl_users(server: ServerOptions, layout: &str) {
    let Some(server) = server.start() else { return };
    let ground = Ground::url(server.url());
    ground.file("sum.rhai", "1 + 2");
    ground
        .run(&["context", "create", "--id", "7", "--layout", layout])
        .ok();
    let (prefix, database) = match layout {
        "db" => ("", 7),
        _ => ("{ctx:7}:", NODE_DATABASE),
    };
    for (user, may_write) in [("admin", true), ("runner", true), ("reader", false)] {
        let url = login(&ground, &server, "7", user, database);
        the_trail_and_the_registry_are_safe(&url, prefix, may_write);
    }
    let [runner, admin] =
        ["runner", "admin"].map(|user| login(&ground, &server, "7", user, NODE_DATABASE));
    let as_admin = |args: &[&str]| start_as(&ground, &admin, args).ended();

    let register = [
        "runner",
        "register",
        "--context",
        "7",
        "--id",
        "20",
        "--type",
        "osis",
    ];
    as_admin(&register).ok();
    let work = ["worker", "--json", "--context", "7", "--runner", "20"];
    let mut worker = start_as(&ground, &runner, &work);
    assert_eq!(json(&worker.line())["runner"], 20);

    let enqueue = ["job", "enqueue", "sum.rhai", "--wait", "--context", "7"];
    assert_eq!(as_admin(&enqueue).ok().stdout.trim(), "3");
    as_admin(&["context", "grant", "7", "reader", "1"]).ok();
    as_admin(&["context", "show", "7"]).ok();
    let trail = as_admin(&["context", "audit", "7"]).ok().stdout;
    assert!(trail.contains("grant"), "{trail}");
    as_admin(&["job", "show", "1", "--context", "7"]).ok();
    worker.stop().ok();
    every_command_of_an_admin_works(&ground, &admin);
    runs_without_a_number(&ground, &admin, &runner);

    // The users are kept out of the rest of the node.
    let refused = as_admin(&["actor", "create", "--key", "other.key"])
        .exits(3)
        .stderr;
    assert!(refused.contains("may not"), "{refused}");
    let refused = start_as(&ground, &runner, &["context", "revoke", "7", "reader", "1"]);
    refused.ended().exits(3);
}

#[test]
fn our_programs_on_redis_in_the_layout_prefix() {
    our_programs_work_as_acl_users(RealServer::redis(), "prefix");
}

#[test]
fn our_programs_on_valkey_in_both_layouts() {
    our_programs_work_as_acl_users(RealServer::valkey(), "db");
    our_programs_work_as_acl_users(RealServer::valkey(), "prefix");
}
