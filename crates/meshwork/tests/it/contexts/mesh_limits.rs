//! Limits of a node for another one, pings, and the counts of what was refused.

use std::time::Duration;

use meshwork::context::{MeshFigures, Node};
use meshwork::mesh::PingError;
use meshwork_model::context::NodeId;
use meshwork_model::keys::context::{ContextId, MessageKey};
use meshwork_model::mesh::{
    Frame, HeldEntry, Item, MAX_HELD_MESSAGES, PeerState, REFUSE_AGAIN_MS, SentFrom,
};

use super::two_nodes::{Fate, NOW, Pair, Side, arrives};

/// Stores as many open messages as a node may have, and lists them below; ARGV: the node, and the number.
const FULL: &str = "
for i = 1, tonumber(ARGV[2]) do
  local origin = ARGV[1] .. '/7/9:' .. i .. '/' .. string.rep('0f', 16)
  local key = 'message:9:' .. i
  redis.call('SET', 'mw:origin:' .. origin, key)
  redis.call('HSET', key, 'mw_origin', origin, 'status', 'dispatched')
end
return 0";
/// Lists them for the node.
const LISTED: &str = "
for i = 1, tonumber(ARGV[2]) do
  redis.call('ZADD', 'mw:peer-in:' .. ARGV[1], 0, '7/9:' .. i .. '/' .. string.rep('0f', 16) .. '/8/100')
end
return 0";

fn state_of(item: &Item) -> Option<PeerState> {
    match item {
        Item::State { state, .. } => Some(*state),
        _ => None,
    }
}

/// The states in the frames that a node sends now.
async fn sent(side: &mut Side, to: NodeId, mono_ms: u64) -> Vec<PeerState> {
    let mut states = Vec::new();
    for frame in side.exchange.outbound(mono_ms).await.unwrap() {
        let now = side.world.node.store().now().await.unwrap();
        let read = Frame::open(&frame.bytes, to, now, |_| Some(side.key.public()));
        states.extend(read.unwrap().items.iter().filter_map(state_of));
        side.exchange.sent(frame, mono_ms).await.unwrap();
    }
    states
}

async fn figures(node: &Node) -> MeshFigures {
    node.mesh_figures().await.unwrap()
}

#[tokio::test]
async fn a_node_with_10000_open_messages_is_busy_until_one_of_them_has_ended() {
    let mut pair = Pair::new().await;
    let (from, most) = (pair.here.id.to_string(), MAX_HELD_MESSAGES.to_string());
    let there = &pair.there.world;
    there
        .plain::<i64>(8, &["EVAL", FULL, "0", &from, &most])
        .await;
    there
        .plain::<i64>(0, &["EVAL", LISTED, "0", &from, &most])
        .await;
    let listed = format!("mw:peer-in:{from}");
    let held = there.plain::<usize>(0, &["ZCARD", &listed]).await;
    assert_eq!(held, MAX_HELD_MESSAGES);
    let key = pair.send().await;
    for _ in 0..50 {
        pair.step(arrives).await;
    }
    assert_eq!(pair.here.message(&key).await["status"], "dispatched");
    assert!(pair.there.exchange.refused()["busy"] > 0);
    assert!(pair.there.world.list(8, "msg_in:8").await.is_empty());
    let ended = ["HSET", "message:9:77", "status", "processed"];
    pair.there.world.plain::<i64>(8, &ended).await;
    let record = pair.until_ended(&key, arrives).await;
    assert_eq!(record["status"], "processed", "{record:?}");
    let here = figures(&pair.there.world.node).await;
    assert!(here.peers[0].refused["busy"] > 0);
}

#[tokio::test]
async fn the_list_of_open_messages_ends_with_them() {
    let mut pair = Pair::new().await;
    let key = pair.send().await;
    for _ in 0..5 {
        pair.step(arrives).await;
    }
    let listed = format!("mw:peer-in:{}", pair.here.id);
    let there = &pair.there.world;
    let members: Vec<String> = there.plain(0, &["ZRANGE", &listed, "0", "-1"]).await;
    let entry: HeldEntry = members[0].parse().unwrap();
    assert_eq!((members.len(), entry.at.get()), (1, 8));
    let record = pair.here.message(&key).await;
    assert_eq!(entry.bytes, record["envelope"].len());
    pair.until_ended(&key, arrives).await;
    for _ in 0..60 {
        pair.step(arrives).await;
    }
    let there = &pair.there.world;
    let left: usize = there.plain(0, &["EXISTS", &listed]).await;
    assert_eq!(left, 0);
}

#[tokio::test]
async fn a_message_is_refused_at_most_once_a_minute() {
    let mut pair = Pair::of_strangers().await;
    let key = pair.send().await;
    let envelope = pair.here.message(&key).await["envelope"].clone();
    let (here, there) = (pair.here.id, pair.there.id);
    let mut states = Vec::new();
    for mono in [0, 1_000, REFUSE_AGAIN_MS - 1, REFUSE_AGAIN_MS] {
        let frame = Frame {
            dst: there,
            src: here,
            sent_ms: NOW * 1000,
            items: vec![Item::Message(envelope.clone().into_bytes())],
        };
        let bytes = frame.seal(&pair.here.key).unwrap();
        let exchange = &mut pair.there.exchange;
        let taken = exchange.receive(pair.here.daemon, &bytes, mono);
        taken.await.unwrap();
        states.push(sent(&mut pair.there, here, mono).await);
    }
    let refused = vec![PeerState::Refused];
    assert_eq!(states, [refused.clone(), vec![], vec![], refused]);
    assert_eq!(pair.there.exchange.refused()["repeated"], 2);
    assert_eq!(pair.there.exchange.refused()["unknown_key"], 2);
    // An unknown message is no refusal: its sender asks as often as he needs.
    let of = SentFrom {
        context: ContextId::new(7).unwrap(),
        message: MessageKey::of_numbers("1:9").unwrap(),
        nonce: meshwork_model::envelope::Nonce([1; 16]),
    };
    let at = ContextId::new(8).unwrap();
    let frame = Frame {
        dst: there,
        src: here,
        sent_ms: NOW * 1000,
        items: vec![Item::Ask { of, at }],
    };
    let bytes = frame.seal(&pair.here.key).unwrap();
    for mono in [70_000, 70_200] {
        let exchange = &mut pair.there.exchange;
        let taken = exchange.receive(pair.here.daemon, &bytes, mono);
        taken.await.unwrap();
        let states = sent(&mut pair.there, here, mono).await;
        assert_eq!(states, [PeerState::Unknown]);
    }
}

#[tokio::test]
async fn unsigned_frames_get_no_answer_and_are_counted_by_node_and_reason() {
    let mut pair = Pair::new().await;
    for _ in 0..5 {
        pair.step(arrives).await;
    }
    let frame = Frame {
        dst: pair.there.id,
        src: pair.here.id,
        sent_ms: NOW * 1000,
        items: vec![Item::Ping { id: 1 }],
    };
    let bytes = frame.seal(&pair.there.key).unwrap();
    let nobody = frame.seal(&pair.here.key).unwrap();
    let mut mono = 100_000;
    for (daemon, bytes) in [
        (pair.here.daemon, &bytes[..]),
        (pair.here.daemon, b"MWF1"),
        (pair.there.daemon, &nobody),
    ] {
        mono += 3_000;
        let exchange = &mut pair.there.exchange;
        exchange.receive(daemon, bytes, mono).await.unwrap();
        let frames = exchange.outbound(mono).await.unwrap();
        assert!(frames.is_empty(), "{frames:?}");
    }
    let seen = figures(&pair.there.world.node).await;
    assert_eq!(seen.peers[0].refused, [("tampered".to_owned(), 1)].into());
    let others = [("malformed".to_owned(), 1), ("unknown_node".to_owned(), 1)];
    assert_eq!(seen.refused, others.into());
}

/// The ping of a command, while both nodes work.
async fn ping(
    pair: &mut Pair,
    patience: Duration,
    fate: fn(usize) -> Fate,
) -> Result<meshwork::context::Pong, PingError> {
    let (node, bob) = (pair.here.world.node.clone(), "bob".parse().unwrap());
    let ping = node.ping(&bob, patience);
    tokio::pin!(ping);
    loop {
        tokio::select! {
            biased;
            ended = &mut ping => return ended,
            // The timer of the ping needs a turn of the runtime.
            () = pair.step(fate) => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn a_ping_measures_the_round_trip_and_the_clock_or_says_what_is_missing() {
    let mut pair = Pair::new().await;
    let long = Duration::from_secs(20);
    // The other clock is ahead.
    pair.there.world.pass(5_000);
    let nobody = ping(&mut pair, long, arrives).await.unwrap_err();
    assert!(matches!(nobody, PingError::NoSupervisor), "{nobody}");
    let held = ["HSET", "mw:mesh", "until_ms", "9999999999999"];
    pair.here.world.plain::<i64>(0, &held).await;
    let pong = ping(&mut pair, long, arrives).await.unwrap();
    assert_eq!(pong.version, env!("CARGO_PKG_VERSION"));
    assert!((0..=300).contains(&pong.round_trip_ms), "{pong:?}");
    assert!((4_700..=5_300).contains(&pong.offset_ms), "{pong:?}");
    // Without an answer; the next one reaches a node that counts as absent.
    for _ in 0..100 {
        pair.step(|_| Fate::Lost).await;
    }
    let lost = ping(&mut pair, Duration::from_millis(200), |_| Fate::Lost).await;
    let lost = lost.unwrap_err();
    assert!(matches!(lost, PingError::NoAnswer { .. }), "{lost}");
    let pong = ping(&mut pair, long, arrives).await.unwrap();
    assert!(pong.round_trip_ms <= 300, "{pong:?}");
    let fault = ["HSET", "mw:mesh", "fault", "no Mycelium daemon answers"];
    pair.here.world.plain::<i64>(0, &fault).await;
    let fails = ping(&mut pair, long, arrives)
        .await
        .unwrap_err()
        .to_string();
    assert!(fails.contains("no Mycelium daemon answers"), "{fails}");
    let bob = "bob".parse().unwrap();
    pair.here.world.node.revoke_node(&bob).await.unwrap();
    let revoked = ping(&mut pair, long, arrives).await.unwrap_err();
    assert!(matches!(revoked, PingError::NotTrusted(_)), "{revoked}");
}
