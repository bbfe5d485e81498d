//! Calls of the library while a server refuses their keys: a slot that is half moved, belongs to no node, or to one of two nodes
//! that send clients to one another, and a server that became a replica. Each call ends, and names the state and the slot.

use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt, join_all};
use meshwork::{Client, Error, JobId, JobRequest, Target, TlsFiles};
use meshwork_broker::Broker;
use meshwork_model::keys::hero::JobKeys;
use meshwork_test_servers::servers::{RealCluster, RealServer};

use crate::worker_support::osis;

/// Longest time of a call that repeats itself for 15 s, on a busy machine.
const ENDS: Duration = Duration::from_secs(40);
/// Time for which a call waits for a job.
const WAIT: Duration = Duration::from_secs(2);
const NAMESPACE: &str = "{hero}";

async fn client(url: &str) -> Client {
    let target = Target::parse(url, TlsFiles::default()).unwrap();
    let keys = JobKeys::new(NAMESPACE.parse().unwrap());
    Client::new(Broker::connect(&target, keys).await.unwrap())
}

/// A call by its name, whose success has no value.
type Call<'a> = (&'static str, BoxFuture<'a, Result<(), Error>>);

fn changes<'a>(client: &'a Client, id: &'a JobId) -> Vec<Call<'a>> {
    let new = || JobRequest::new(osis(), "1");
    vec![
        (
            "enqueue",
            async move { client.enqueue(new()).await.map(drop) }.boxed(),
        ),
        (
            "run",
            async move { client.run(new()).await.map(drop) }.boxed(),
        ),
        ("cancel", client.cancel(id).map(|it| it.map(drop)).boxed()),
        ("retry", client.retry(id).map(|it| it.map(drop)).boxed()),
        ("delete", client.delete(id).map(|it| it.map(drop)).boxed()),
        (
            "batch",
            client.batch().open().map(|it| it.map(drop)).boxed(),
        ),
    ]
}

fn reads<'a>(client: &'a Client, id: &'a JobId) -> Vec<Call<'a>> {
    vec![
        (
            "result",
            client.result(id, WAIT).map(|it| it.map(drop)).boxed(),
        ),
        ("status", client.status(id).map(|it| it.map(drop)).boxed()),
        ("summary", client.summary(id).map(|it| it.map(drop)).boxed()),
        (
            "log_lines",
            client.log_lines(id).map(|it| it.map(drop)).boxed(),
        ),
        (
            "children",
            client.children(id).map(|it| it.map(drop)).boxed(),
        ),
        (
            "next_run",
            client.next_run(id).map(|it| it.map(drop)).boxed(),
        ),
        ("batches", client.batches(10).map(|it| it.map(drop)).boxed()),
        ("stale", client.stale(0).map(|it| it.map(drop)).boxed()),
    ]
}

/// Makes the calls at once. Each fails in time, with one of each list of words.
async fn all_fail(calls: Vec<Call<'_>>, words: &[&[&str]]) {
    let began = Instant::now();
    let calls = calls.into_iter().map(|(name, call)| async move {
        let ended = tokio::time::timeout(ENDS, call).await;
        (name, ended, began.elapsed())
    });
    let mut wrong = Vec::new();
    for (name, ended, took) in join_all(calls).await {
        let said = match ended {
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(())) => "no error".to_owned(),
            Err(_) => "no end".to_owned(),
        };
        if !words
            .iter()
            .all(|any| any.iter().any(|word| said.contains(word)))
        {
            wrong.push((name, took, said));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A Cluster with a client, the number of a slot without keys, and that of its node.
async fn cluster() -> Option<(RealCluster, Client, String, usize)> {
    let cluster = RealCluster::start(RealServer::redis(), 0).await?;
    let client = client(&cluster.url()).await;
    let (owner, slot) = cluster.owner(NAMESPACE);
    Some((cluster, client, slot.to_string(), owner))
}

async fn all_fail_with(client: &Client, slot: &str, codes: &[&str]) {
    let id = "none".parse().unwrap();
    let calls = changes(client, &id).into_iter().chain(reads(client, &id));
    all_fail(calls.collect(), &[&[&format!("slot {slot}")], codes]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_half_moved() {
    let Some((cluster, client, slot, from)) = cluster().await else {
        return;
    };
    let number = slot.parse().unwrap();
    cluster.begin_move(number, from, (from + 1) % 3).unwrap();
    all_fail_with(&client, &slot, &["ASK", "TRYAGAIN"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_about_which_nodes_disagree() {
    let Some((cluster, client, slot, from)) = cluster().await else {
        return;
    };
    let nodes = cluster.nodes();
    let other: String = nodes[(from + 1) % 3].say(&["CLUSTER", "MYID"]).unwrap();
    let words = ["CLUSTER", "SETSLOT", &slot, "NODE", &other];
    nodes[from].say::<()>(&words).unwrap();
    all_fail_with(&client, &slot, &["MOVED"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_without_a_node() {
    let Some((cluster, client, slot, _)) = cluster().await else {
        return;
    };
    for node in cluster.nodes() {
        node.say::<()>(&["CLUSTER", "DELSLOTS", &slot]).unwrap();
    }
    all_fail_with(&client, &slot, &["CLUSTERDOWN"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_became_a_replica() {
    let Some(server) = RealServer::redis().start() else {
        return;
    };
    let client = client(&server.url()).await;
    let id = client.enqueue(JobRequest::new(osis(), "1")).await.unwrap();
    server.say::<()>(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    let words: [&[&str]; 2] = [&["read only replica"], &["it is a replica"]];
    all_fail(changes(&client, &id), &words).await;
}
