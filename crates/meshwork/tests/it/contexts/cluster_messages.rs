//! Messages between contexts of a Cluster: each arrives once while slots move, nodes are killed and replicas take over.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use meshwork::context::{Coordinator, Node, Serves};
use meshwork_broker::WaitReplicas;
use meshwork_test_servers::eventually;
use meshwork_test_servers::servers::{RealCluster, RealServer};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::world::{LEASE_MS, World};

/// Longer than anything here takes; for messages, the longest time in which none arrives.
const PATIENCE: Duration = Duration::from_secs(60);
/// Moves of slots, and kills of nodes, in a test.
const MOVES: usize = 8;
const KILLS: usize = 4;
/// The rule under which a failover loses nothing.
const CONFIRMED: WaitReplicas = WaitReplicas {
    replicas: 1,
    timeout: Duration::from_millis(500),
};

fn many(default: usize) -> usize {
    std::env::var("MESHWORK_MESSAGES").map_or(default, |it| it.parse().unwrap())
}

/// The position of an event that is due after this message; `times` events are spread evenly over all messages.
fn due(number: usize, many: usize, times: usize) -> Option<usize> {
    let every = many.div_ceil(times);
    (number % every == every / 2).then_some(number / every)
}

/// A coordinator that runs.
pub(super) struct Serving {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Serving {
    pub(super) async fn start(node: &Node) -> Self {
        let coordinator = Coordinator::new(node).await.unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { coordinator.run(&Serves::All, &stopped).await });
        Self { stop, task }
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// The sender of numbered messages.
struct Sender<'a> {
    world: &'a World,
    begun: Instant,
    start_ms: u64,
    /// Calls that failed. Each may have stored its message all the same.
    failed: usize,
}

impl<'a> Sender<'a> {
    fn new(world: &'a World) -> Self {
        Self {
            world,
            begun: Instant::now(),
            start_ms: world.hand.load(Ordering::SeqCst),
            failed: 0,
        }
    }

    /// Lets the clock of the contexts show the time that has passed.
    fn keep_time(&self) {
        let passed = u64::try_from(self.begun.elapsed().as_millis()).unwrap();
        self.world
            .hand
            .store(self.start_ms + passed, Ordering::SeqCst);
    }

    /// Sends a message, again while the call fails.
    async fn send(&mut self, number: usize) {
        eventually("the message is stored", PATIENCE, async || {
            self.keep_time();
            let sent = self.world.try_send_text(&number.to_string()).await;
            self.failed += usize::from(sent.is_err());
            sent.ok()
        })
        .await;
    }

    /// The number of messages that are on their way; `None` while a node does not answer.
    async fn under_way(&self) -> Option<usize> {
        let keys = self.world.context(7).await.keys().clone();
        let mut count = 0;
        for (command, key) in [
            ("LLEN", keys.msg_out()),
            ("LLEN", keys.msg_out_coordinator()),
            ("ZCARD", keys.outbound()),
        ] {
            count += self.world.try_plain::<usize>(7, &[command, &key]).await?;
        }
        Some(count)
    }

    async fn until_none_is_under_way(&self) {
        let mut before = usize::MAX;
        while before > 0 {
            before = eventually("a further message arrives", PATIENCE, async || {
                self.keep_time();
                let left = self.under_way().await?;
                (left < before).then_some(left)
            })
            .await;
        }
    }

    /// Compares what arrived with what was sent, and returns the figures.
    async fn judge(&self, many: usize) -> String {
        let arrived = self.world.list(8, "msg_in").await;
        let different: BTreeSet<_> = arrived.iter().collect();
        assert_eq!(arrived.len(), different.len(), "listed twice");
        let (seven, eight) = (self.world.context(7).await, self.world.context(8).await);
        let stored = eight.messages(&self.world.me).await.unwrap();
        let texts: BTreeSet<_> = stored.iter().map(|it| &it.message.message).collect();
        let sent: BTreeSet<_> = (0..many).map(|number| number.to_string()).collect();
        assert_eq!(texts, sent.iter().collect(), "lost");
        let doubled = stored.len() - texts.len();
        let of_sender = seven.messages(&self.world.me).await.unwrap();
        let open = of_sender.iter().filter(|it| it.stored_at.is_none()).count();
        assert!(doubled <= self.failed, "{doubled} doubled");
        assert_eq!(open, 0);
        format!(
            "{many} messages in {:?}: lost 0, doubled {doubled}, calls that failed {}, open {open}",
            self.begun.elapsed(),
            self.failed
        )
    }
}

/// Sends `MESHWORK_MESSAGES` messages, 400 by default.
#[tokio::test]
async fn messages_arrive_once_while_slots_move_and_nodes_are_killed() {
    let many = many(400);
    let options = RealServer::redis().append_only();
    let Some(mut cluster) = RealCluster::start(options, 0).await else {
        return;
    };
    let world = World::on_cluster(&cluster, None).await;
    let serving = Serving::start(&world.node).await;
    let mut owners = [7, 8].map(|id| cluster.owner(&format!("{{ctx:{id}}}")));
    let mut sender = Sender::new(&world);
    for number in 0..many {
        sender.send(number).await;
        if let Some(at) = due(number, many, MOVES) {
            let (from, slot) = owners[at % 2];
            let to = (from + 1) % 3;
            cluster.settle().await;
            cluster.begin_move(slot, from, to).unwrap();
            cluster.move_keys(slot, from, to).unwrap();
            cluster.end_move(slot, from, to).unwrap();
            owners[at % 2].0 = to;
        }
        if let Some(at) = due(number, many, KILLS) {
            let node = cluster.node_mut(at % 3);
            node.kill9();
            node.start_again();
        }
    }
    sender.until_none_is_under_way().await;
    println!("{}", sender.judge(many).await);
    serving.stop().await;
}

/// Waits until the replica of a master has taken over, and starts the old one again, as the replica of the new one.
pub(super) async fn replaced(cluster: &mut RealCluster, master: usize) {
    let replica = &cluster.nodes()[master + 3];
    eventually("a failover", PATIENCE, async || {
        (replica.info("role")? == "master").then_some(())
    })
    .await;
    cluster.node_mut(master).start_again();
    let replica = &cluster.nodes()[master + 3];
    eventually("a new replica", PATIENCE, async || {
        (replica.info("connected_slaves")? == "1").then_some(())
    })
    .await;
}

/// Each master dies once, and its data with it: a replica that had confirmed what was stored takes over.
#[tokio::test]
async fn messages_arrive_once_while_replicas_take_over() {
    let many = many(300);
    let Some(mut cluster) = RealCluster::start(RealServer::redis(), 3).await else {
        return;
    };
    let world = World::on_cluster(&cluster, Some(CONFIRMED)).await;
    let serving = Serving::start(&world.node).await;
    let mut sender = Sender::new(&world);
    let reached = AtomicUsize::new(0);
    let sending = async {
        for number in 0..many {
            sender.send(number).await;
            reached.store(number, Ordering::SeqCst);
        }
    };
    let killing = async {
        for master in 0..3 {
            eventually("messages are on their way", PATIENCE, async || {
                (reached.load(Ordering::SeqCst) > many * (master + 1) / 4).then_some(())
            })
            .await;
            cluster.node_mut(master).kill9();
            replaced(&mut cluster, master).await;
        }
    };
    tokio::join!(sending, killing);
    sender.until_none_is_under_way().await;
    println!("{}", sender.judge(many).await);
    serving.stop().await;
}

#[tokio::test]
async fn a_message_leaves_its_sender_when_a_replica_of_its_target_has_it() {
    let Some(mut cluster) = RealCluster::start(RealServer::redis(), 3).await else {
        return;
    };
    let world = World::on_cluster(&cluster, Some(CONFIRMED)).await;
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    world.send_text("1").await;
    // The replica gets nothing more from its master.
    let (target, _) = cluster.owner("{ctx:8}");
    cluster.nodes()[target + 3].pause();
    let cut = ["CLIENT", "KILL", "TYPE", "replica"];
    cluster.nodes()[target].say::<i64>(&cut).unwrap();
    coordinator.settle().await.unwrap_err();
    // Stored, and not acknowledged.
    assert_eq!(world.list(8, "msg_in").await, ["{ctx:8}:message:1:1"]);
    let taken = world.list(7, "msg_out_coordinator").await;
    assert_eq!(taken, ["{ctx:7}:message:1:1"]);
    cluster.node_mut(target).kill9();
    cluster.nodes()[target + 3].resume();
    replaced(&mut cluster, target).await;
    eventually("the message is sent again", PATIENCE, async || {
        world.pass(LEASE_MS);
        coordinator.settle().await.ok()?;
        let taken = world.list(7, "msg_out_coordinator").await;
        taken.is_empty().then_some(())
    })
    .await;
    assert_eq!(world.list(8, "msg_in").await.len(), 1);
}
