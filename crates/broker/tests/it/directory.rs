//! A data directory: one process owns it, others attach, and one takes over.
use std::time::Duration;

use meshwork_broker::conn::{ConnectError, Target};
use meshwork_broker::context::{ContextStore, Database};
use meshwork_broker::{Broker, Claim, Completed, Enqueued, PrefetchLists};
use meshwork_model::job::NewJob;
use meshwork_model::keys::hero::JobKeys;
use meshwork_model::route::Route;
use meshwork_model::state::Status;
use meshwork_test_servers::eventually;

const LEASE: Duration = Duration::from_secs(60);

async fn open(dir: &std::path::Path) -> Result<Broker, ConnectError> {
    Broker::connect(&Target::Directory(dir.to_owned()), JobKeys::default()).await
}

fn job(id: &str) -> NewJob {
    NewJob::new(
        id.parse().unwrap(),
        Route::to("osis".parse().unwrap()),
        "40 + 2",
    )
}

async fn run_one(broker: &Broker, worker: &str) -> String {
    let queues = [job("x").route.queue(broker.keys())];
    let claim = Claim {
        queues: &queues,
        old: &[],
        reverse: false,
        prefetch: PrefetchLists::All,
        want: 1,
        ahead: 0,
        lease: LEASE,
        worker,
        token: worker,
    };
    let taken = broker.claim(claim).await.unwrap();
    let claimed = &taken.jobs[0];
    assert_eq!(
        broker.complete(claimed, b"42", b"", b"").await.unwrap(),
        Completed::Finished
    );
    claimed.job.id.clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_attaches_and_takes_over() {
    let dir = tempfile::tempdir().unwrap();
    let owner = open(dir.path()).await.unwrap();
    let attached = open(dir.path()).await.unwrap();
    owner.enqueue(&[job("a"), job("b")]).await.unwrap();
    assert_eq!(run_one(&attached, "w1").await, "a");

    // A wait of the attached one is seen by the owner's pushes.
    let blocking = attached.blocking_conn().await.unwrap();
    let queue = Route::to("python".parse().unwrap()).queue(owner.keys());
    let waiting = {
        let (attached, queue) = (attached.clone(), queue.clone());
        let wait = Duration::from_secs(30);
        tokio::spawn(async move { attached.wait_for_job(&blocking, "w1", &queue, wait).await })
    };
    let mut python = job("p");
    python.route = Route::to("python".parse().unwrap());
    owner.enqueue(&[python]).await.unwrap();
    assert!(waiting.await.unwrap().unwrap());

    drop(owner);
    // Reads are repeated.
    assert!(
        attached
            .inspect(&"a".parse().unwrap())
            .await
            .unwrap()
            .is_some()
    );
    // And soon this process owns the data: the other may have answered that on its way out. What changes something is
    // for the caller to repeat.
    let stored = eventually("it is stored", LEASE, async || {
        attached.enqueue(&[job("c")]).await.ok()
    });
    let stored = stored.await;
    assert!(matches!(stored[..], [Enqueued::Stored | Enqueued::Exists]));
    assert_eq!(run_one(&attached, "w2").await, "b");
    let a = attached
        .inspect(&"a".parse().unwrap())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (a.status(), a.output.as_deref()),
        (Some(Status::Finished), Some(&b"42"[..]))
    );

    // And a third attaches to it.
    let third = open(dir.path()).await.unwrap();
    assert_eq!(run_one(&third, "w3").await, "c");
}

/// A command that starts while another one ends fails no more with a broken pipe.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_by_script_outlives_the_owner() {
    let dir = tempfile::tempdir().unwrap();
    let owner = open(dir.path()).await.unwrap();
    owner.enqueue(&[job("a")]).await.unwrap();
    let attached = open(dir.path()).await.unwrap();
    let store = ContextStore::of(&attached);
    drop(owner);
    let key = attached.keys().job_hash_key(&"a".parse().unwrap());
    let read = store.hashes(Database::Node, &[key]).await.unwrap();
    assert!(!read[0].is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_is_there_again() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..3 {
        let broker = open(dir.path()).await.unwrap();
        assert_eq!(broker.list(0).await.unwrap().jobs.len(), n);
        broker.enqueue(&[job(&format!("j{n}"))]).await.unwrap();
    }
}

#[tokio::test]
async fn a_path_too_long_for_a_socket_is_none_for_us() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("x".repeat(120)).join("y".repeat(120));
    let owner = open(&long).await.unwrap();
    let attached = open(&long).await.unwrap();
    owner.enqueue(&[job("a")]).await.unwrap();
    assert!(
        attached
            .inspect(&"a".parse().unwrap())
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn what_cannot_be_opened_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let said = open(&dir.path().join("file"))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("file") && said.contains("not a directory"),
        "{said}"
    );
    std::fs::create_dir(dir.path().join("appendonlydir")).unwrap();
    let said = open(dir.path()).await.unwrap_err().to_string();
    assert!(said.contains("a Redis server has taken it over"), "{said}");
    std::fs::remove_dir(dir.path().join("appendonlydir")).unwrap();
    std::fs::write(
        dir.path().join("appendonly.aof"),
        "*1\r\n$4\r\nnope\r\n*x\r\n*1\r\n",
    )
    .unwrap();
    let said = open(dir.path()).await.unwrap_err().to_string();
    assert!(
        said.contains("appendonly.aof") && said.contains("byte"),
        "{said}"
    );
    let kept = std::fs::read_to_string(dir.path().join("appendonly.aof")).unwrap();
    assert!(kept.starts_with("*1\r\n$4\r\nnope"), "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_come_and_go_all_find_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let come_and_go = |n: usize| {
        let path = dir.path().to_owned();
        async move {
            for round in 0..10 {
                let broker = open(&path).await.unwrap();
                assert!(broker.list(0).await.is_ok(), "{n}: round {round}");
            }
        }
    };
    futures_util::future::join_all((0..8).map(come_and_go)).await;
}

/// As an operator, or whoever gets at the socket, may do it: the owner's own sessions are clients too.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_whose_sessions_are_killed_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let owner = open(dir.path()).await.unwrap();
    let attached = open(dir.path()).await.unwrap();
    owner.enqueue(&[job("a")]).await.unwrap();
    let blocking = owner.blocking_conn().await.unwrap();
    let queue = Route::to("python".parse().unwrap()).queue(owner.keys());
    let waiting = {
        let (owner, queue) = (owner.clone(), queue.clone());
        let wait = Duration::from_secs(30);
        tokio::spawn(async move { owner.wait_for_job(&blocking, "w1", &queue, wait).await })
    };
    let clients = async || {
        let list = redis::cmd("CLIENT").arg("LIST").to_owned();
        let list: String = list
            .query_async(&mut attached.conn().clone())
            .await
            .unwrap();
        list
    };
    let waits = async || clients().await.contains("cmd=blmove").then_some(());
    eventually("a session waits", Duration::from_secs(30), waits).await;

    let mut kill = redis::cmd("CLIENT");
    kill.arg("KILL").arg("TYPE").arg("normal");
    let killed: u64 = kill
        .query_async(&mut attached.conn().clone())
        .await
        .unwrap();
    assert!(killed > 1, "only {killed}");

    let broken = waiting.await.unwrap().unwrap_err();
    let meshwork_broker::Error::Call { source, .. } = &broken else {
        panic!("{broken}");
    };
    assert!(source.is_io_error(), "as a connection that broke: {broken}");
    for _ in 0..32 {
        owner.now().await.unwrap();
    }
    assert_eq!(run_one(&owner, "w1").await, "a");
}
