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
}
