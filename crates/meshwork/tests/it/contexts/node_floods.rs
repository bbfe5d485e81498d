//! Several nodes, of which one is absent or sends too much: the others do not notice. Calls of the server are counted.

use meshwork::context::{Coordinator, MessageJob, NewMessage, new_key};
use meshwork::mesh::Exchange;
use meshwork_model::access::Role;
use meshwork_model::actor_key::KeyBytes;
use meshwork_model::context::{MessageType, NodeId};
use meshwork_model::envelope::Nonce;
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::{Frame, Item, SentFrom};
use meshwork_test_servers::servers::RealServer;

use super::two_nodes::{NOW, Side};
use super::world::World;

/// Time of a step, in milliseconds.
const STEP: u64 = 100;
/// Messages that wait for an absent node.
const WAITING: usize = 100_000;
/// Frames of a flood.
const FLOOD: u32 = 10_000;
/// Frames of a node in a second, at most.
const RATE: u64 = 100;

/// A node on a server, whose calls are counted.
struct Counted {
    side: Side,
    url: String,
}

impl Counted {
    async fn start(number: u8) -> Option<Self> {
        let server = RealServer::redis().start()?;
        let url = server.url();
        let world = Box::pin(World::over(Some(server))).await;
        let key = new_key();
        let side = Side {
            exchange: Exchange::new(&world.node, key.clone()).await.unwrap(),
            coordinator: Coordinator::new(&world.node).await.unwrap(),
            id: world.node.identity().await.unwrap(),
            world,
            key,
            daemon: KeyBytes([number; 32]),
        };
        Some(Self { side, url })
    }

    /// Number of commands that the server has run, also those of scripts.
    fn calls(&self) -> u64 {
        let mut conn = redis::Client::open(&*self.url)
            .and_then(|client| client.get_connection())
            .unwrap();
        let info: String = redis::cmd("INFO").arg("stats").query(&mut conn).unwrap();
        let mut lines = info.lines();
        let line = lines.find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.unwrap().parse().unwrap()
    }
}

/// Both nodes trust each other, and each takes jobs of the other one in context 8.
async fn trust(one: &Side, other: &Side, names: [&str; 2]) {
    for (from, to, name) in [(one, other, names[1]), (other, one, names[0])] {
        from.trust(to, name).await;
        let actor = to.world.me.key().public();
        let actor = from.world.node.trust(actor, None).await.unwrap();
        let eight = from.world.context(8).await;
        let granted = eight.grant(&from.world.me, Role::Admin, actor.id);
        granted.await.unwrap();
    }
}

async fn send(from: &Side, to: NodeId) -> String {
    let mut new = NewMessage::new(ContextId::new(8).unwrap(), MessageType::Job);
    new.node = Some(to);
    new.jobs = vec![MessageJob {
        script_type: "v".parse().unwrap(),
        script: "1".to_owned(),
        timeout: None,
        retries: 0,
        env_vars: Default::default(),
        after: Vec::new(),
    }];
    let seven = from.world.context(7).await;
    let sent = seven.send(&from.world.me, &new).await;
    sent.unwrap().key().to_string()
}

/// One step of all nodes. Frames to a node that is not here are lost.
async fn step(sides: &mut [&mut Side], mono: &mut u64) {
    *mono += STEP;
    for side in sides.iter() {
        side.world.pass(STEP);
        side.settle().await;
    }
    for at in 0..sides.len() {
        sides[at].exchange.wake();
        for frame in sides[at].exchange.outbound(*mono).await.unwrap() {
            let daemon = sides[at].daemon;
            let to = sides.iter_mut().find(|side| side.id == frame.to);
            if let Some(to) = to {
                let taken = to.exchange.receive(daemon, &frame.bytes, *mono).await;
                taken.unwrap();
            }
            sides[at].exchange.sent(frame, *mono).await.unwrap();
        }
    }
}

#[tokio::test]
async fn many_messages_for_an_absent_node_cost_others_nothing() {
    let Some(mut here) = Counted::start(1).await else {
        return;
    };
    let (mut carol, bob) = (Box::pin(Side::new(3)).await, Box::pin(Side::new(2)).await);
    trust(&here.side, &carol, ["alice", "carol"]).await;
    trust(&here.side, &bob, ["alice", "bob"]).await;
    let mut mono = 0;
    let mut cost = async |here: &mut Counted, carol: &mut Side| {
        let before = here.calls();
        let (there, local) = (
            send(&here.side, carol.id).await,
            here.side.world.send_job().await.to_string(),
        );
        for _ in 0..10 {
            step(&mut [&mut here.side, carol], &mut mono).await;
        }
        for key in [there, local] {
            assert_eq!(here.side.message(&key).await["status"], "acknowledged");
        }
        here.calls() - before
    };
    cost(&mut here, &mut carol).await;
    let usual = cost(&mut here, &mut carol).await;
    // Bob does not answer: after a while he is absent.
    let first = send(&here.side, bob.id).await;
    for _ in 0..10 {
        cost(&mut here, &mut carol).await;
    }
    let outbox = format!("mw:peer-out:{}", bob.id);
    let at = (NOW * 1000).to_string();
    for page in 0..WAITING / 1_000 {
        let entry = |number: usize| {
            let id = page * 1_000 + number + 1;
            format!("message/7/1:{id}/{}/{at}", Nonce([1; 16]))
        };
        let entries: Vec<_> = (0..1_000).map(entry).collect();
        let pairs = entries.iter().flat_map(|entry| [at.as_str(), entry]);
        let words: Vec<_> = ["ZADD", &outbox].into_iter().chain(pairs).collect();
        here.side.world.plain::<i64>(0, &words).await;
    }
    let busy = cost(&mut here, &mut carol).await;
    assert!(busy <= 2 * usual, "{busy} calls instead of {usual}");
    let left: usize = here.side.world.plain(0, &["ZCARD", &outbox]).await;
    assert_eq!(left, WAITING + 1);
    assert_eq!(here.side.message(&first).await["status"], "dispatched");
}

#[tokio::test]
async fn a_node_that_floods_is_bounded_and_two_others_are_served() {
    let Some(mut there) = Counted::start(2).await else {
        return;
    };
    let (mut alice, mut carol) = (Box::pin(Side::new(1)).await, Box::pin(Side::new(3)).await);
    let mallory = Box::pin(Side::new(4)).await;
    trust(&there.side, &alice, ["bob", "alice"]).await;
    trust(&there.side, &carol, ["bob", "carol"]).await;
    trust(&there.side, &mallory, ["bob", "mallory"]).await;
    let mut mono = 0;
    for _ in 0..3 {
        step(&mut [&mut there.side, &mut alice, &mut carol], &mut mono).await;
    }
    let (first, second) = (
        send(&alice, there.side.id).await,
        send(&carol, there.side.id).await,
    );
    let before = there.calls();
    // All of them in one second, between the frames of the others.
    for number in 0..FLOOD {
        let of = SentFrom {
            context: ContextId::new(7).unwrap(),
            message: MessageKey::new(1, number + 1),
            nonce: Nonce([9; 16]),
        };
        let at = ContextId::new(8).unwrap();
        let frame = Frame {
            dst: there.side.id,
            src: mallory.id,
            sent_ms: NOW * 1000,
            items: vec![Item::Ask { of, at }],
        };
        let bytes = frame.seal(&mallory.key).unwrap();
        let now = mono + u64::from(number) * STEP / u64::from(FLOOD);
        let taken = there.side.exchange.receive(mallory.daemon, &bytes, now);
        taken.await.unwrap();
        if number == FLOOD / 2 {
            for _ in 0..5 {
                step(&mut [&mut there.side, &mut alice, &mut carol], &mut mono).await;
            }
        }
    }
    assert_eq!(alice.message(&first).await["status"], "acknowledged");
    assert_eq!(carol.message(&second).await["status"], "acknowledged");
    let busy = there.side.exchange.refused()["busy"];
    assert!(busy >= u64::from(FLOOD) - 3 * RATE, "{busy} frames refused");
    // A frame beyond the rate costs less than one call.
    let calls = there.calls() - before;
    assert!(calls < u64::from(FLOOD) / 2, "{calls} calls");
}

#[tokio::test]
async fn items_of_a_long_frame_wait_for_those_of_other_nodes() {
    const ITEMS: u64 = 1_000;
    let Some(mut there) = Counted::start(1).await else {
        return;
    };
    let (mallory, mut alice) = (Box::pin(Side::new(2)).await, Box::pin(Side::new(3)).await);
    trust(&there.side, &mallory, ["bob", "mallory"]).await;
    trust(&there.side, &alice, ["bob", "alice"]).await;
    let frame = |first: u64| {
        let items = (first..first + ITEMS).map(|id| Item::Ping { id }).collect();
        let frame = Frame {
            dst: there.side.id,
            src: mallory.id,
            sent_ms: NOW * 1000,
            items,
        };
        frame.seal(&mallory.key).unwrap()
    };
    let frames = [frame(0), frame(ITEMS), frame(2 * ITEMS)];
    let key = send(&alice, there.side.id).await;
    let mut mono = 0;
    for bytes in &frames {
        let taken = there.side.exchange.receive(mallory.daemon, bytes, mono);
        taken.await.unwrap();
    }
    // One frame waits, the others are dropped.
    assert_eq!(there.side.exchange.refused()["busy"], 2);
    let mut pongs = Vec::new();
    for _ in 0..20 {
        mono += STEP;
        for frame in there.side.exchange.outbound(mono).await.unwrap() {
            if frame.to == mallory.id {
                let opened = Frame::open(&frame.bytes, mallory.id, NOW * 1000, |_| {
                    Some(there.side.key.public())
                });
                pongs.push(opened.unwrap().items.len());
            }
            there.side.exchange.sent(frame, mono).await.unwrap();
        }
    }
    assert!(pongs[0] <= 201, "{pongs:?}");
    // Some are pings of this side.
    let all: usize = pongs.iter().sum();
    assert!((1_000..1_010).contains(&all), "{pongs:?}");
    for _ in 0..5 {
        step(&mut [&mut there.side, &mut alice], &mut mono).await;
    }
    assert_eq!(alice.message(&key).await["status"], "acknowledged");
}

#[tokio::test]
async fn ended_messages_leave_the_outbox_of_a_node_that_does_not_come_back() {
    for revoked in [false, true] {
        let (mut here, bob) = (Box::pin(Side::new(1)).await, Box::pin(Side::new(2)).await);
        trust(&here, &bob, ["alice", "bob"]).await;
        send(&here, bob.id).await;
        let mut mono = 0;
        // He does not answer, and is absent after a while.
        for _ in 0..100 {
            step(&mut [&mut here], &mut mono).await;
        }
        assert_eq!(here.outbox(bob.id).await.len(), 1);
        if revoked {
            let name = "bob".parse().unwrap();
            here.world.node.revoke_node(&name).await.unwrap();
        }
        const DAY: u64 = 24 * 3600 * 1000 + 10_000;
        mono += DAY;
        here.world.pass(DAY);
        for _ in 0..3 {
            step(&mut [&mut here], &mut mono).await;
        }
        mono += 60_000;
        step(&mut [&mut here], &mut mono).await;
        assert!(here.outbox(bob.id).await.is_empty(), "revoked: {revoked}");
    }
}
