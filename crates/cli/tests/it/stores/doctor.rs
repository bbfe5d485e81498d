//! `meshwork doctor`: what it prints, and its exit codes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};

use crate::common::Ground;
use meshwork_test_servers::servers::{RealServer, need_root};

#[test]
fn a_data_directory_is_in_order() {
    let ground = Ground::embedded().unwrap();
    let done = ground.run(&["doctor"]).ok();
    assert!(
        done.stdout
            .contains("ok       persistence: append-only file"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_data_directory_that_others_may_write_to_is_refused_and_named() {
    let ground = Ground::embedded().unwrap();
    ground.run(&["queue", "list"]).ok();
    let data = ground.path("data");
    for (path, mode, code) in [(&data, 0o777, 1), (&data, 0o770, 1), (&data, 0o700, 0)] {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let done = ground.run(&["doctor"]).exits(code);
        let said = done
            .stdout
            .contains("problem  directory: other users may write");
        assert_eq!(said, code == 1, "{}", done.stdout);
        assert_eq!(
            done.stdout.contains("chmod go-w"),
            code == 1,
            "{}",
            done.stdout
        );
        let done = ground.run(&["queue", "list"]);
        assert_eq!(done.stderr.contains("chmod go-w"), code == 1, "{done:#?}");
    }
    // Who may write above it could put another one in its place.
    fs::set_permissions(ground.path("."), Permissions::from_mode(0o777)).unwrap();
    let done = ground.run(&["doctor"]).ok();
    assert!(
        done.stdout.contains("warning  directory: everybody"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_data_directory_of_somebody_else_is_named() {
    if !need_root("a_data_directory_of_somebody_else_is_named") {
        return;
    }
    let ground = Ground::embedded().unwrap();
    ground.run(&["queue", "list"]).ok();
    chown(ground.path("data"), Some(65_534), None).unwrap();
    let done = ground.run(&["doctor"]).exits(1);
    let words = "belongs to user 65534, and this is user 0";
    assert!(done.stdout.contains(words), "{}", done.stdout);
    let done = ground.run(&["queue", "list"]);
    assert!(
        done.code != Some(0) && done.stderr.contains("chown -R 0"),
        "{done:#?}"
    );
}

#[test]
fn a_problem_is_told_with_its_remedy_and_an_exit_code() {
    let Some(server) = RealServer::redis().max_memory_policy("allkeys-lru").start() else {
        return;
    };
    let ground = Ground::url(server.url());
    let done = ground.run(&["doctor"]).exits(1);
    for line in [
        "problem  eviction: maxmemory-policy is allkeys-lru",
        "         do:  CONFIG SET maxmemory-policy noeviction",
    ] {
        assert!(done.stdout.contains(line), "{}", done.stdout);
    }
    let done = ground.run(&["doctor", "--json"]).exits(1);
    let findings = done.jsons();
    let eviction = findings
        .iter()
        .find(|one| one["check"] == "eviction")
        .unwrap();
    assert_eq!(eviction["level"], "problem");
    assert!(
        eviction["remedy"].is_string() && eviction["why"].is_string(),
        "{eviction}"
    );

    for words in [["maxmemory-policy", "noeviction"], ["appendonly", "yes"]] {
        server
            .say::<()>(&["CONFIG", "SET", words[0], words[1]])
            .unwrap();
    }
    ground.run(&["doctor"]).ok();
}

#[test]
fn nobody_there() {
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let done = Ground::url(format!("redis://127.0.0.1:{port}"))
        .run(&["doctor"])
        .exits(3);
    assert!(done.stderr.contains("no answer from"), "{}", done.stderr);
}

#[test]
fn a_job_is_tried_and_leaves_nothing() {
    crate::common::on_both(|ground| {
        let done = ground.run(&["doctor"]).stdout;
        assert!(
            done.contains("ok       trial: a job was enqueued, claimed, completed"),
            "{done}"
        );
        assert!(ground.jobs().is_empty());
        let queues = ground.run(&["queue", "list", "--json"]).ok();
        assert!(!queues.stdout.contains("meshwork-doctor"), "{queues:?}");
    });
}

#[test]
fn a_server_on_which_no_job_works_is_a_problem() {
    let Some(server) = RealServer::redis().password("x").start() else {
        return;
    };
    let done = Ground::url(server.url_without_login())
        .run(&["doctor"])
        .exits(1);
    for words in [
        "problem  trial: the connection failed",
        "do:  give user and password in the URL",
    ] {
        assert!(done.stdout.contains(words), "{}", done.stdout);
    }
    let renamed = RealServer::redis().args(&["--rename-command", "LMOVE", ""]);
    let server = renamed.start().unwrap();
    let done = Ground::url(server.url()).run(&["doctor"]).exits(1);
    let words = "problem  commands: the server does not have LMOVE";
    assert!(done.stdout.contains(words), "{}", done.stdout);
    for command in ["EVALSHA", "BLMOVE", "SCRIPT", "INFO"] {
        let renamed = RealServer::redis().args(&["--rename-command", command, ""]);
        let server = renamed.start().unwrap();
        let ground = Ground::url(server.url());
        let done = ground.run(&["doctor"]).exits(1);
        let line = done
            .stdout
            .lines()
            .find(|line| line.starts_with("problem  trial: "));
        assert!(
            line.is_some_and(|it| it.contains(command)),
            "{command}: {}",
            done.stdout
        );
        assert!(
            done.stdout.contains("rename-command"),
            "{command}: {}",
            done.stdout
        );
    }
}

/// Runs the doctor, which names this problem.
fn has_problem(ground: &Ground, words: &str) {
    let done = ground.run(&["doctor"]).exits(1);
    let problem = format!("problem  {words}");
    assert!(done.stdout.contains(&problem), "{words}: {}", done.stdout);
}

#[test]
fn damage_in_contexts_flows_and_batches_is_named() {
    let Some(ground) = Ground::redis() else {
        return;
    };
    ground.file("one.rhai", "1");
    ground.run(&["batch", "create", "--id", "b"]).ok();
    ground
        .run(&["batch", "add", "b", "one.rhai", "--ids", "j"])
        .ok();
    ground
        .run(&["context", "create", "--layout", "prefix"])
        .ok();
    let flow = "flow: slow\njobs:\n  a: {wait: {for: 1h}}\n";
    ground.file("slow.yaml", flow);
    for _ in 0..2 {
        ground.run(&["flow", "submit", "slow.yaml"]).ok();
    }
    let whole = ground.run(&["doctor"]).stdout;
    for check in ["flows: ", "batches: ", "keys: "] {
        assert!(!whole.contains(check), "{whole}");
    }
    ground.raw("SREM hero:q:members:b j-1");
    has_problem(
        &ground,
        "batches: 1, such as batch b has 1 open job by its counts, and 0 in its list",
    );
    ground.raw("DEL {ctx:1}:mw:flow:1:plan");
    has_problem(&ground, "flows: 1, such as flow 1 of context 1 has no plan");
    ground.raw("ZREM {ctx:1}:mw:flows-due 2");
    has_problem(
        &ground,
        "flows: 2, such as flow 2 of context 1 is not among those that are due, flow 1",
    );
    ground.raw("SET {ctx:1}:mw:events x");
    has_problem(
        &ground,
        "keys: {ctx:1}:mw:events is a string, and has to be a stream",
    );
}

#[test]
fn a_log_that_was_cut_is_named() {
    let ground = Ground::embedded().unwrap();
    ground.file("one.rhai", "1");
    ground.run(&["run", "one.rhai"]).ok();
    let said = ground.run(&["doctor"]).ok().stdout;
    assert!(said.contains("ok       log: "), "{said}");
    let log = ground.path("data/appendonly.aof");
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.set_len(fs::metadata(&log).unwrap().len() / 2).unwrap();
    has_problem(&ground, "log: ");
}
