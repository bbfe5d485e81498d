//! The command on a real cluster: what it says of a namespace without a hash tag, and that all else works.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::common::{Done, Ground, json};
use meshwork_test_servers::servers::{RealCluster, RealServer};

#[tokio::test(flavor = "multi_thread")]
async fn a_hash_tag_is_all_it_takes() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    for url in [cluster.url(), cluster.nodes()[0].url()] {
        let ground = Ground::url(url);
        ground.file("answer.rhai", "6 * 7");
        let done = ground.run(&["run", "answer.rhai"]).exits(3);
        assert!(
            done.stderr.contains("--namespace '{hero}'"),
            "{}",
            done.stderr
        );
        let done = ground
            .run(&["run", "answer.rhai", "--namespace", "{hero}"])
            .ok();
        assert_eq!(done.stdout, "42\n");
        let done = ground
            .run(&["job", "list", "--namespace", "{hero"])
            .exits(2);
        assert!(done.stderr.contains("make no hash tag"), "{}", done.stderr);
    }

    // Keys of other systems have a prefix of their own.
    let ground = Ground::url(cluster.url());
    ground.file("a.rhai", "1");
    for (args, prefix) in [
        (&["bananas", "queues"][..], "{bananas}"),
        (&["bananas", "submit", "a"], "{bananas}"),
        (
            &["worker", "--protocol", "bananas", "--handler", "a=a.rhai"],
            "{bananas}",
        ),
        (&["action", "send", "a.b"], "{nooble4}"),
        (
            &["service", "--name", "a", "--handler", "a.b=a.rhai"],
            "{nooble4}",
        ),
    ] {
        let said = ground.run(args).exits(3).stderr;
        let asks = format!("--prefix '{prefix}'");
        assert!(
            said.contains(&asks) && !said.contains("--namespace"),
            "{args:?}: {said}"
        );
    }
    let done = ground.run(&["bananas", "submit", "a", "--prefix", "{bananas}"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = ground.run(&["action", "send", "a.b", "--prefix", "{nooble4}"]);
    assert_eq!(done.code, Some(0), "{done:?}");
}

/// Contexts 1, 2 and 3 are on three nodes.
#[tokio::test(flavor = "multi_thread")]
async fn contexts_are_spread_over_the_nodes() {
    let Some(cluster) = RealCluster::start(RealServer::redis().append_only(), 0).await else {
        return;
    };
    let ground = Ground::url(cluster.url());
    let in_cluster = |words: &[&str]| ground.run(&[words, &["--namespace", "{hero}"]].concat());
    let said = in_cluster(&["context", "create", "--layout", "db"])
        .exits(2)
        .stderr;
    assert!(said.contains("--layout prefix"), "{said}");
    for id in ["1", "2", "3"] {
        assert_eq!(in_cluster(&["context", "create"]).ok().stdout.trim(), id);
    }
    placed(&in_cluster);
    let shown = in_cluster(&["context", "show", "2"]).ok().stdout;
    assert!(shown.contains("prefix"), "{shown}");
    ground.file("answer.rhai", "6 * 7");
    for id in ["1", "2", "3"] {
        let done = in_cluster(&["run", "answer.rhai", "--context", id]).ok();
        assert_eq!(done.stdout, "42\n");
    }
    let serve = [
        "supervisor",
        "--worker",
        "osis",
        "--json",
        "--namespace",
        "{hero}",
    ];
    let mut supervisor = ground.start(&serve);
    assert_eq!(json(&supervisor.line())["event"], "ready");
    let sent = [
        "message",
        "send",
        "2",
        "--job",
        "answer.rhai",
        "--context",
        "1",
        "--wait",
    ];
    let sent = in_cluster(&sent).ok().stdout;
    assert!(sent.contains("42"), "{sent}");
    supervisor.stop().ok();
    in_cluster(&["doctor"]).ok();
}

/// New contexts go where they are requested to, else to the node with the fewest.
fn placed(in_cluster: &impl Fn(&[&str]) -> Done) {
    let nodes = || {
        let listed = in_cluster(&["context", "list", "--json"]).ok().jsons();
        let of = |it: Value| {
            (
                it["id"].to_string(),
                it["node"].as_str().unwrap().to_owned(),
            )
        };
        listed.into_iter().map(of).collect::<BTreeMap<_, _>>()
    };
    let create = |words: &[&str]| {
        let made = in_cluster(&[&["context", "create"], words].concat()).ok();
        made.stdout.trim().to_owned()
    };
    let first = nodes();
    let each: BTreeSet<_> = first.values().collect();
    assert_eq!(each.len(), 3, "{first:?}");
    let near = create(&["--near", "2"]);
    assert_eq!(nodes()[&near], first["2"]);
    let on = create(&["--node", &first["3"]]);
    assert_eq!(nodes()[&on], first["3"]);
    // The first node has one context, the others two.
    let least = create(&[]);
    assert_eq!(nodes()[&least], first["1"]);
    let said = in_cluster(&["context", "create", "--node", "nowhere:1"])
        .exits(2)
        .stderr;
    assert!(said.contains(&first["1"]), "{said}");
    let said = in_cluster(&["context", "create", "--near", "77"])
        .exits(5)
        .stderr;
    assert!(said.contains("no context 77"), "{said}");
    assert_eq!(nodes().len(), 6);
}

#[test]
fn a_single_server_is_near_to_all_and_has_no_nodes_to_choose() {
    let ground = Ground::embedded().unwrap();
    let created = |words: &[&str]| ground.run(&[&["context", "create"], words].concat());
    assert_eq!(created(&[]).ok().stdout, "1\n");
    assert_eq!(created(&["--near", "1"]).ok().stdout, "2\n");
    let said = created(&["--node", "127.0.0.1:6379"]).exits(2).stderr;
    assert!(said.contains("no Cluster"), "{said}");
    let said = created(&["--id", "7", "--near", "1"]).exits(2).stderr;
    assert!(said.contains("cannot be used with"), "{said}");
}
