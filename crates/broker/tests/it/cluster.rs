//! A real cluster of three nodes: any node leads to the one that keeps the namespace, wherever it moves.

use crate::common::{PATIENCE, WORKER, answered, claim, job, queue};
use meshwork_broker::conn::ConnectError;
use meshwork_broker::script::Scripts;
use meshwork_broker::{Broker, Completed, Enqueued};
use meshwork_model::keys::context::{ContextKeys, ContextLayout};
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealServer, ServerOptions};

const TAGGED: &str = "{hero}";

async fn connect(url: &str, namespace: &str) -> Result<Broker, ConnectError> {
    crate::common::connect(url, JobKeys::new(namespace.parse().unwrap())).await
}

async fn stored(broker: &Broker, id: &str) -> bool {
    answered("a job is stored", async || broker.enqueue(&[job(id)]).await).await
        == [Enqueued::Stored]
}

async fn any_node_leads_to_the_data(options: ServerOptions) {
    let Some(cluster) = RealCluster::start(options, 0).await else {
        return;
    };
    for (at, node) in cluster.nodes().iter().enumerate() {
        let broker = connect(&node.url(), TAGGED).await.unwrap();
        assert!(stored(&broker, &format!("j{at}")).await);
        // The connections that wait are made apart.
        let blocking = broker.blocking_conn().await.unwrap();
        let came = broker
            .wait_for_job(&blocking, WORKER, &queue(&broker), PATIENCE)
            .await;
        assert!(came.unwrap());
    }
    let broker = connect(&cluster.url(), TAGGED).await.unwrap();
    assert_eq!(claim(&broker).await.unwrap().len(), 3);
    let page = broker.list(0).await.unwrap();
    assert_eq!((page.jobs.len(), page.next), (3, 0));
}

#[tokio::test]
async fn any_node_of_redis() {
    any_node_leads_to_the_data(RealServer::redis()).await;
}

#[tokio::test]
async fn any_node_of_valkey() {
    any_node_leads_to_the_data(RealServer::valkey()).await;
}

#[tokio::test]
async fn a_namespace_without_a_hash_tag_is_refused() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    for url in [cluster.url(), cluster.nodes()[0].url()] {
        let error = connect(&url, "hero").await.unwrap_err();
        let untagged = matches!(error, ConnectError::Untagged { .. });
        assert!(untagged, "{error}");
        let said = error.to_string();
        assert!(said.contains("--namespace '{hero}'"), "{said}");
    }
    for node in cluster.nodes() {
        assert_eq!(node.say::<usize>(&["DBSIZE"]).unwrap(), 0);
    }
}

/// No script may need two nodes: the suite runs on a node that refuses this. Checked for both kinds of scripts, with
/// and without the flag for full memory.
#[tokio::test]
async fn a_script_with_a_key_of_another_slot_is_refused() {
    let test = "a_script_with_a_key_of_another_slot_is_refused";
    let Some(cluster) = RealCluster::start_masters_for(test, RealServer::redis(), 1).await else {
        return;
    };
    let broker = connect(&cluster.url(), TAGGED).await.unwrap();
    assert!(stored(&broker, "j1").await);
    let elsewhere = |_, source: &str| format!("redis.call('GET', 'elsewhere') {source}");
    let broker = broker.with_scripts(&Scripts::altered(elsewhere));
    let refused = [
        broker.enqueue(&[job("j2")]).await.unwrap_err(),
        claim(&broker).await.unwrap_err(),
    ];
    for error in refused {
        let said = error.to_string();
        assert!(said.contains("do not hash to the same slot"), "{said}");
    }
}

/// The URL is that of a cluster, and the server is none.
#[tokio::test]
async fn a_server_that_is_no_cluster_says_so() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let url = server.url().replacen("redis:", "redis+cluster:", 1);
    let said = connect(&url, TAGGED).await.unwrap_err().to_string();
    assert!(said.contains("cluster support disabled"), "{said}");
}

#[tokio::test]
async fn a_slot_moves_while_jobs_wait_and_run() {
    let Some(cluster) = RealCluster::start(RealServer::redis(), 0).await else {
        return;
    };
    let broker = connect(&cluster.url(), TAGGED).await.unwrap();
    let (from, slot) = cluster.owner(TAGGED);
    let to = (from + 1) % 3;
    broker.enqueue(&[job("j1")]).await.unwrap();
    let held = claim(&broker).await.unwrap();
    broker.enqueue(&[job("j2"), job("j3")]).await.unwrap();
    let blocking = broker.blocking_conn().await.unwrap();

    // One id is in the worker's prefetch list, one in the queue, so that every key of the claim exists.
    let on = queue(&broker);
    assert!(
        broker
            .wait_for_job(&blocking, WORKER, &on, PATIENCE)
            .await
            .unwrap()
    );

    // The lists are here and the next job there: nothing is done by halves.
    cluster.begin_move(slot, from, to).unwrap();
    let next = broker.keys().job_hash_key(&"j2".parse().unwrap());
    cluster.move_key(from, to, &next).unwrap();
    for refused in [
        claim(&broker).await.unwrap_err(),
        broker
            .complete(&held[0], b"42", b"", b"")
            .await
            .unwrap_err(),
        broker.enqueue(&[job("j4")]).await.unwrap_err(),
        broker.inspect(&"j2".parse().unwrap()).await.unwrap_err(),
    ] {
        assert!(refused.is_temporary() && refused.is_moving(), "{refused}");
        assert!(
            refused
                .to_string()
                .contains(&format!("slot {slot} at node")),
            "{refused}"
        );
    }
    let source = &cluster.nodes()[from];
    for list in [&on, &broker.keys().feed(WORKER, &on)] {
        assert_eq!(source.say::<usize>(&["LLEN", list]).unwrap(), 1, "{list}");
    }

    cluster.move_keys(slot, from, to).unwrap();
    let waited = broker
        .wait_for_job(&blocking, WORKER, &queue(&broker), PATIENCE)
        .await;
    assert!(waited.unwrap_err().is_temporary());
    cluster.end_move(slot, from, to).unwrap();
    let said = answered("the report is taken", async || {
        broker.complete(&held[0], b"42", b"", b"").await
    });
    assert_eq!(said.await, Completed::Finished);
    let waiting = answered("jobs can be claimed", async || claim(&broker).await).await;
    let ids: Vec<_> = waiting.iter().map(|one| one.job.id.as_str()).collect();
    assert_eq!(ids, ["j2", "j3"]);
    let blocking = answered("a new wait is possible", async || {
        broker.blocking_conn().await
    })
    .await;
    broker.enqueue(&[job("j5")]).await.unwrap();
    assert!(
        broker
            .wait_for_job(&blocking, WORKER, &queue(&broker), PATIENCE)
            .await
            .unwrap()
    );
}

/// The master hangs, which closes no connection; its replica takes over.
async fn fails_over(end: impl FnOnce(&mut RealServer)) {
    let Some(mut cluster) = RealCluster::start(RealServer::redis(), 3).await else {
        return;
    };
    let broker = connect(&cluster.nodes()[0].url(), TAGGED).await.unwrap();
    let (master, _) = cluster.owner(TAGGED);
    broker.enqueue(&[job("j1")]).await.unwrap();
    let held = claim(&broker).await.unwrap();
    // Its replica has it.
    let all = cluster.nodes()[master].info("master_repl_offset").unwrap();
    eventually("the replica has the job", PATIENCE, async || {
        (cluster.nodes()[master + 3].info("slave_repl_offset")? >= all).then_some(())
    })
    .await;
    let blocking = broker.blocking_conn().await.unwrap();
    let on = queue(&broker);
    let (waited, ()) = tokio::join!(
        broker.wait_for_job(&blocking, WORKER, &on, PATIENCE),
        async {
            end(cluster.node_mut(master));
            let said = answered("the report is taken", async || {
                broker.complete(&held[0], b"42", b"", b"").await
            });
            assert_eq!(said.await, Completed::Finished);
        }
    );
    assert!(waited.unwrap_err().is_temporary());
    let job = broker
        .inspect(&"j1".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(job.status(), Some(Status::Finished));
}

#[tokio::test]
async fn a_replica_takes_over_from_a_master_that_dies() {
    fails_over(RealServer::kill9).await;
}

#[tokio::test]
async fn a_replica_takes_over_from_a_master_that_hangs() {
    fails_over(|master| master.pause()).await;
}

/// A context's node that may lose jobs is refused, and one that is gone is named.
#[tokio::test]
async fn each_further_node_is_checked_and_named() {
    let options = RealServer::redis().args(&["--cluster-require-full-coverage", "no"]);
    let Some(mut cluster) = RealCluster::start(options, 0).await else {
        return;
    };
    let last = &cluster.nodes()[2];
    let host = format!("127.0.0.1:{}", last.port());
    last.say::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"])
        .unwrap();
    // {hero} is in the slot 8184, of the second node; context 2 is in that of the third one.
    let keys = ContextKeys::new("2".parse().unwrap(), ContextLayout::Prefix);
    let said = async || {
        let broker = connect(&cluster.url(), TAGGED).await.unwrap();
        let in_context = broker.of_context(keys.clone()).await.unwrap();
        in_context
            .list(0)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let refused = said().await.unwrap_err();
    assert!(refused.contains(&host), "{refused}");
    assert!(refused.contains("maxmemory-policy noeviction"), "{refused}");
    last.say::<()>(&["CONFIG", "SET", "maxmemory-policy", "noeviction"])
        .unwrap();
    said().await.unwrap();
    let broker = connect(&cluster.url(), TAGGED).await.unwrap();
    let in_context = broker.of_context(keys.clone()).await.unwrap();
    in_context.list(0).await.unwrap();
    cluster.node_mut(2).kill9();
    let first = in_context.list(0).await.unwrap_err().to_string();
    assert!(first.contains(&host), "{first}");
    let next = in_context.list(0).await.unwrap_err().to_string();
    assert!(next.contains(&host), "{next}");
}
