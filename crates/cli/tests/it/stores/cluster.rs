//! The command on a real cluster: what it says of a namespace without a hash tag, and that all else works.

use crate::common::Ground;
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

    let ground = Ground::url(cluster.url());
    for layout in ["db", "prefix"] {
        let create = [
            "context",
            "create",
            "--namespace",
            "{hero}",
            "--layout",
            layout,
        ];
        let said = ground.run(&create).exits(3).stderr;
        assert!(said.contains("a Redis Cluster of several nodes"), "{said}");
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
