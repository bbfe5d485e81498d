//! `meshwork doctor`: what it prints, and its exit codes.

use crate::common::Ground;
use meshwork_test_servers::servers::RealServer;

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
