//! Two nodes without a daemon: the test carries the frames, loses some, and repeats others.

use std::collections::BTreeMap;

use meshwork::context::{ContextError, Coordinator, MessageJob, NewMessage, NewRunner, new_key};
use meshwork::mesh::Exchange;
use meshwork_model::access::Role;
use meshwork_model::actor_key::{KeyBytes, SecretKey};
use meshwork_model::context::{MessageType, NodeId};
use meshwork_model::keys::context::{ContextId, RunnerId};
use meshwork_model::mesh::Card;

use super::world::World;

/// Start of the clocks, in seconds since 1970.
pub(super) const NOW: u64 = 1_700_000_000;
/// Time of a step, in milliseconds: that between two frames to a node.
const STEP: u64 = 100;

/// A node, and its side of the exchange.
pub(super) struct Side {
    pub(super) world: World,
    pub(super) exchange: Exchange,
    pub(super) coordinator: Coordinator,
    pub(super) id: NodeId,
    pub(super) key: SecretKey,
    pub(super) daemon: KeyBytes,
}

impl Side {
    pub(super) async fn new(number: u8) -> Self {
        let world = World::over(None).await;
        let key = new_key();
        Self {
            exchange: Exchange::new(&world.node, key.clone()).await.unwrap(),
            coordinator: Coordinator::new(&world.node).await.unwrap(),
            id: world.node.identity().await.unwrap(),
            world,
            key,
            daemon: KeyBytes([number; 32]),
        }
    }

    pub(super) fn card(&self) -> String {
        let card = Card {
            node: self.id,
            key: self.key.public(),
            daemon: self.daemon,
            created_at: NOW,
            expires_at: NOW + 30 * 24 * 3600,
        };
        card.seal(&self.key, None)
    }

    pub(super) async fn trust(&self, other: &Self, name: &str) {
        let name = name.parse().unwrap();
        let card = other.card();
        let trusted = self.world.node.trust_node(card.as_bytes(), &name).await;
        assert_eq!(trusted.unwrap().card.node, other.id);
    }

    /// Accepts jobs of the other node's actor, in context 8.
    async fn accept(&self, other: &Self) {
        let node = &self.world.node;
        let actor = node.trust(other.world.me.key().public(), None).await;
        let eight = self.world.context(8).await;
        let granted = eight.grant(&self.world.me, Role::Admin, actor.unwrap().id);
        granted.await.unwrap();
    }

    pub(super) async fn settle(&self) {
        self.world.settle(&self.coordinator).await;
    }

    pub(super) async fn outbox(&self, to: NodeId) -> Vec<String> {
        let key = format!("mw:peer-out:{to}");
        self.world.plain(0, &["ZRANGE", &key, "0", "-1"]).await
    }

    pub(super) async fn message(&self, key: &str) -> BTreeMap<String, String> {
        self.world.plain(7, &["HGETALL", key]).await
    }
}

/// Fate of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Arrives,
    Lost,
    Doubled,
}

/// Two nodes that trust each other. The first one sends from its context 7 to context 8 of the second one.
pub(super) struct Pair {
    pub(super) here: Side,
    pub(super) there: Side,
    pub(super) mono: u64,
    frames: usize,
}

impl Pair {
    /// Two nodes, of which the second one knows no actor of the first one.
    pub(super) async fn of_strangers() -> Self {
        let here = Box::pin(Side::new(1)).await;
        let there = Box::pin(Side::new(2)).await;
        here.trust(&there, "bob").await;
        there.trust(&here, "alice").await;
        let (mono, frames) = (0, 0);
        Self {
            here,
            there,
            mono,
            frames,
        }
    }

    pub(super) async fn new() -> Self {
        let pair = Box::pin(Self::of_strangers()).await;
        pair.there.accept(&pair.here).await;
        pair
    }

    fn pass(&mut self, ms: u64) {
        self.mono += ms;
        self.here.world.pass(ms);
        self.there.world.pass(ms);
    }

    pub(super) async fn try_send(
        &self,
        change: impl FnOnce(&mut NewMessage),
    ) -> Result<String, ContextError> {
        let mut new = NewMessage::new(ContextId::new(8).unwrap(), MessageType::Job);
        new.node = Some(self.there.id);
        new.jobs = vec![MessageJob {
            script_type: "v".parse().unwrap(),
            script: "1".to_owned(),
            timeout: None,
            retries: 0,
            env_vars: Default::default(),
            after: Vec::new(),
        }];
        change(&mut new);
        let world = &self.here.world;
        let sent = world.context(7).await.send(&world.me, &new).await;
        sent.map(|message| message.key().to_string())
    }

    pub(super) async fn send(&self) -> String {
        self.try_send(|_| {}).await.unwrap()
    }

    /// Both nodes do all that they can, and one frame of each is carried.
    pub(super) async fn step(&mut self, fate: impl Fn(usize) -> Fate) {
        self.pass(STEP);
        self.here.settle().await;
        self.there.settle().await;
        self.carry(true, &fate).await;
        self.carry(false, &fate).await;
    }

    async fn carry(&mut self, forth: bool, fate: impl Fn(usize) -> Fate) {
        let (from, to) = match forth {
            true => (&mut self.here, &mut self.there),
            false => (&mut self.there, &mut self.here),
        };
        from.exchange.wake();
        for frame in from.exchange.outbound(self.mono).await.unwrap() {
            if frame.to != to.id {
                // A third node is away.
                from.exchange.sent(frame, self.mono).await.unwrap();
                continue;
            }
            assert_eq!(frame.daemon, to.daemon);
            let times = match fate(self.frames) {
                Fate::Arrives => 1,
                Fate::Lost => 0,
                Fate::Doubled => 2,
            };
            self.frames += 1;
            for _ in 0..times {
                let taken = to.exchange.receive(from.daemon, &frame.bytes, self.mono);
                taken.await.unwrap();
            }
            from.exchange.sent(frame, self.mono).await.unwrap();
        }
    }

    /// Steps until the message has ended; plain runners run its job. Returns its record.
    pub(super) async fn until_ended(
        &mut self,
        key: &str,
        fate: impl Fn(usize) -> Fate,
    ) -> BTreeMap<String, String> {
        for _ in 0..2_000 {
            self.step(&fate).await;
            if !self.there.world.list(8, "queue:v").await.is_empty() {
                self.there.world.run_job().await;
            }
            let record = self.here.message(key).await;
            if ["processed", "error"].contains(&record["status"].as_str()) {
                return record;
            }
        }
        panic!("no end: {:?}", self.here.message(key).await);
    }
}

pub(super) fn arrives(_: usize) -> Fate {
    Fate::Arrives
}

#[tokio::test]
async fn a_job_runs_on_another_node_and_its_result_comes_home() {
    let mut pair = Pair::new().await;
    let key = pair.send().await;
    pair.here.settle().await;
    let record = pair.here.message(&key).await;
    assert_eq!(record["status"], "dispatched");
    assert!(record["logs"].contains("queued for node"), "{record:?}");
    for _ in 0..5 {
        pair.step(arrives).await;
    }
    assert_eq!(pair.here.message(&key).await["status"], "acknowledged");
    // The number of the sender there, and the node from which he comes.
    let (there, from) = (&pair.there.world, pair.here.id.to_string());
    assert_eq!(there.list(8, "queue:v").await, ["job:2:1"]);
    assert_eq!(there.field(8, "job:2:1", "mw_from_node").await, from);
    assert_eq!(there.field(8, "job:2:1", "caller_id").await, "2");
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["status"], "processed");
    let inbox = pair.here.world.list(7, "msg_in").await;
    assert_eq!(inbox, [record["mw_result"].clone()]);
    let result = pair.here.world.field(7, &inbox[0], "job").await;
    assert!(result.contains(r#""rows":"5""#), "{result}");
    assert!(result.contains(r#""caller_id":1"#), "{result}");
    // Nothing is left to be sent.
    pair.pass(60_000);
    pair.step(arrives).await;
    assert!(pair.here.outbox(pair.there.id).await.is_empty());
    assert!(pair.there.outbox(pair.here.id).await.is_empty());
}

/// Registers a runner of context 8, with this number and topic.
async fn register(world: &World, id: u32, topic: Option<&str>) {
    let new = NewRunner {
        id: Some(RunnerId(id)),
        types: vec!["v".parse().unwrap()],
        local: true,
        topic: topic.map(str::to_owned),
        pubkey: None,
        address: None,
    };
    let eight = world.context(8).await;
    eight.register_runner(&world.me, &new).await.unwrap();
}

#[tokio::test]
async fn a_topic_sends_the_jobs_to_its_runner_on_the_other_node() {
    let mut pair = Pair::new().await;
    register(&pair.there.world, 20, None).await;
    register(&pair.there.world, 21, Some("reports")).await;
    for (topic, number) in [("runner20", "20"), ("reports", "21")] {
        let key = pair.try_send(|new| new.topic = Some(topic.to_owned()));
        let key = key.await.unwrap();
        for _ in 0..5 {
            pair.step(arrives).await;
        }
        let there = &pair.there.world;
        let queue = format!("queue:v:group:default:inst:{number}");
        let jobs = there.list(8, &queue).await;
        assert_eq!(jobs.len(), 1, "{topic}");
        assert_eq!(there.field(8, &jobs[0], "mw_instance").await, number);
        assert_eq!(pair.here.message(&key).await["status"], "acknowledged");
    }
    assert!(pair.there.world.list(8, "queue:v").await.is_empty());
    let unknown = pair.try_send(|new| new.topic = Some("runner22".to_owned()));
    let key = unknown.await.unwrap();
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["mw_reason"], "no_runner");
    assert!(record["logs"].contains("runner22"), "{record:?}");
}

#[tokio::test]
async fn a_topic_inside_the_node_is_checked_when_the_message_is_sent() {
    let world = World::over(None).await;
    register(&world, 20, None).await;
    let send = async |topic: &str, script_type: &str| {
        let mut new = NewMessage::new(ContextId::new(8).unwrap(), MessageType::Job);
        new.topic = Some(topic.to_owned());
        new.jobs = vec![MessageJob {
            script_type: script_type.parse().unwrap(),
            script: "1".to_owned(),
            timeout: None,
            retries: 0,
            env_vars: Default::default(),
            after: Vec::new(),
        }];
        world.context(7).await.send(&world.me, &new).await
    };
    for (topic, script_type, said) in [
        (
            "runner22",
            "v",
            "no runner of context 8 has the topic \"runner22\"",
        ),
        ("runner20", "python", "runs no jobs of the type python"),
    ] {
        let error = send(topic, script_type).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    assert!(world.list(7, "msg_out").await.is_empty());
    send("runner20", "v").await.unwrap();
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    world.settle(&coordinator).await;
    let jobs = world.list(8, "queue:v:group:default:inst:20").await;
    assert_eq!(jobs.len(), 1);
    // The runner was deleted after the message was sent.
    send("runner20", "v").await.unwrap();
    world.plain::<i64>(8, &["DEL", "runner:20"]).await;
    world.settle(&coordinator).await;
    let reason = world.field(7, "message:1:2", "mw_reason").await;
    assert_eq!(reason, "no_runner");
}

#[tokio::test]
async fn a_job_of_this_node_names_no_node() {
    let world = World::over(None).await;
    let coordinator = Coordinator::new(&world.node).await.unwrap();
    world.send_job().await;
    world.settle(&coordinator).await;
    assert_eq!(world.field(8, "job:1:1", "mw_from_node").await, "");
    assert_eq!(world.field(8, "job:1:1", "mw_message").await, "message:1:1");
}

#[tokio::test]
async fn each_lost_or_repeated_frame_is_repaired_and_runs_no_job_twice() {
    for fate in [Fate::Lost, Fate::Doubled] {
        for hit in 0..7 {
            let mut pair = Pair::new().await;
            let key = pair.send().await;
            let of = |at: usize| match at == hit {
                true => fate,
                false => Fate::Arrives,
            };
            let record = pair.until_ended(&key, of).await;
            assert_eq!(record["status"], "processed", "{fate:?} {hit}");
            let jobs: Vec<String> = pair.there.world.plain(8, &["KEYS", "job:*"]).await;
            assert_eq!(jobs.len(), 1, "{fate:?} {hit}");
            assert_eq!(pair.here.world.list(7, "msg_in").await.len(), 1);
        }
    }
}

#[tokio::test]
async fn an_absent_node_delays_nobody_and_its_messages_end_at_their_timeouts() {
    let mut pair = Pair::new().await;
    let key = pair.try_send(|new| new.timeout = 600).await.unwrap();
    for _ in 0..200 {
        pair.step(|_| Fate::Lost).await;
    }
    let frames = pair.frames;
    let local = pair.here.world.send_job().await.to_string();
    pair.here.settle().await;
    assert_eq!(pair.here.message(&local).await["status"], "acknowledged");
    // Pings alone: one a minute.
    for _ in 0..100 {
        pair.pass(600 - STEP);
        pair.step(|_| Fate::Lost).await;
    }
    assert!(pair.frames - frames <= 4, "{}", pair.frames - frames);
    assert_eq!(pair.here.message(&key).await["status"], "dispatched");
    pair.pass(600_000);
    pair.step(|_| Fate::Lost).await;
    let record = pair.here.message(&key).await;
    assert_eq!(record["status"], "error");
    assert_eq!(record["mw_reason"], "not_delivered");
}

#[tokio::test]
async fn an_absent_node_that_is_back_gets_its_messages_at_once() {
    let mut pair = Pair::new().await;
    let key = pair.send().await;
    for _ in 0..200 {
        pair.step(|_| Fate::Lost).await;
    }
    // It starts again, and pings.
    let node = &pair.there.world.node;
    pair.there.exchange = Exchange::new(node, pair.there.key.clone()).await.unwrap();
    for _ in 0..5 {
        pair.step(arrives).await;
    }
    assert_eq!(pair.here.message(&key).await["status"], "acknowledged");
}

#[tokio::test]
async fn a_message_that_the_other_node_has_lost_is_sent_again() {
    let mut pair = Pair::new().await;
    let key = pair.send().await;
    for _ in 0..3 {
        pair.step(arrives).await;
    }
    assert!(pair.here.message(&key).await.contains_key("mw_stored_at"));
    // As after the restore of an old copy of its store.
    let all: Vec<String> = pair.there.world.plain(8, &["KEYS", "*"]).await;
    for lost in all.iter().filter(|key| *key != "context:8") {
        pair.there.world.plain::<i64>(8, &["DEL", lost]).await;
    }
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["status"], "processed", "{record:?}");
}

#[tokio::test]
async fn chat_to_another_node_is_processed_when_it_is_read() {
    let mut pair = Pair::new().await;
    let sent = pair.try_send(|new| {
        (new.message_type, new.text) = (MessageType::Chat, "hello".to_owned());
        new.jobs.clear();
    });
    let key = sent.await.unwrap();
    for _ in 0..3 {
        pair.step(arrives).await;
    }
    let there = &pair.there.world;
    let eight = there.context(8).await;
    let transport = pair.there.coordinator.transport();
    let read = eight.read_inbox(&there.me, transport, 10).await.unwrap();
    assert_eq!(read[0].message.message, "hello");
    for _ in 0..3 {
        pair.step(arrives).await;
    }
    assert_eq!(pair.here.message(&key).await["status"], "processed");
}
